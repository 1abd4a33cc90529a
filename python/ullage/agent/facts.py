"""What is this Python made of, as far as that changes how memory behaves: version, build, variables, the versions of
what is installed, and the libraries that are mapped.

Used twice: by the agent inside a job (`inside`: imports nothing, calls nothing of torch that would set something up)
and by `ullage snapshot`, which runs this file as a program. As a program it prints one JSON object a line: first what
can be known without importing anything, then what importing torch and numpy adds; whoever reads may stop waiting at
any line. Names are those of docs/reference/snapshot-json.md.
"""

import posix
import sys

PREFIXES = (
    "MALLOC_", "OMP_", "GOMP_", "MKL_", "KMP_", "PYTORCH_", "TORCH", "PYTHON", "ONEDNN_", "DNNL_", "OPENBLAS_",
    "NUMEXPR_", "NCCL_", "CUDA_", "TCMALLOC_", "MIMALLOC_", "JE_ARROW_", "ARROW_", "RAYON_", "LRU_CACHE_", "ULLAGE_FIX",
)  # fmt: skip
NAMES = (
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "GLIBC_TUNABLES",
    "TMPDIR",
    "VECLIB_MAXIMUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU",
    "SLURM_CPUS_ON_NODE",
)
SECRET = ("TOKEN_", "_TOKEN", "KEY", "SECRET", "PASSW", "CREDENTIAL")
ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc", "hoard", "snmalloc", "libscalloc", "rpmalloc", "libumem")
OPENMP = ("libgomp", "libiomp5", "libomp", "libiomp")
BLAS = ("openblas", "libmkl_", "libblas", "libatlas", "libblis", "libflexiblas", "libnvpl_blas", "libaccelerate")
OWN = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHON_HISTORY")  # paths: they differ and change nothing
MAX_PACKAGES = 1500


def inside():
    """For the agent: from what the program has imported already."""
    facts = {}
    for part in (_interpreter, _environment, _cores, _packages, _torch_module, _mapped):
        try:
            part(facts)
        except Exception:
            pass
    return facts


def loaded_since(told):
    """What is mapped that was not when these facts were told."""
    facts = {}
    try:
        _mapped(facts)
    except Exception:
        pass
    return {name: value for name, value in facts.items() if told.get(name) != value}


def _names(module):
    """What a module holds: of a real one only, another object in its place may have code for what it is asked."""
    module_type = type(sys)
    found = sys.modules.get(module)
    return module_type.__dict__["__dict__"].__get__(found) if issubclass(type(found), module_type) else {}


def _interpreter(facts):
    facts["python.version"] = "%d.%d.%d" % sys.version_info[:3]
    facts["python.implementation"] = sys.implementation.name
    facts["python.debug"] = hasattr(sys, "gettotalrefcount")
    gil = getattr(sys, "_is_gil_enabled", None)
    facts["python.gil"] = True if gil is None else gil()
    allocator = posix.environ.get(b"PYTHONMALLOC", b"").decode("utf-8", "replace")
    if not allocator:
        allocator = "mimalloc" if "t" in getattr(sys, "abiflags", "") else "pymalloc"
    facts["python.allocator"] = allocator
    default = getattr(_names("multiprocessing.context").get("_default_context"), "_default_context", None)
    if default is not None:
        facts["python.start_method"] = str(default._name)
    try:
        facts["libc.version"] = posix.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (ValueError, OSError):
        facts["libc.version"] = "not glibc"


def _environment(facts):
    for name, value in posix.environ.items():
        name = name.decode("utf-8", "replace")
        if name in OWN or not (name.startswith(PREFIXES) or name in NAMES):
            continue
        if name not in NAMES and any(word in name for word in SECRET):
            continue
        facts["env." + name] = value.decode("utf-8", "replace")[:300]


def _cores(facts):
    facts["cores.allowed"] = len(posix.sched_getaffinity(0))
    with open("/proc/self/status", "rb", buffering=0) as file:
        status = file.read()
    at = status.find(b"THP_enabled:")
    if at >= 0:
        facts["thp.process"] = status[at + 12 : at + 16].strip()[:1] != b"0"


def _packages(facts):
    found = 0
    for folder in dict.fromkeys([folder for folder in sys.path if type(folder) is str]):
        try:
            names = posix.listdir(folder or ".")
        except (OSError, ValueError):
            continue
        for name in names:
            stem, dot, kind = name.rpartition(".")
            if dot and kind in ("dist-info", "egg-info"):
                package, dash, version = stem.partition("-")
                # The first on the path is the one that is imported.
                key = "package." + package.lower().replace("_", "-")
                if dash and key not in facts and found < MAX_PACKAGES:
                    facts[key] = version.partition("-py")[0] if kind == "egg-info" else version
                    found += 1


def _torch_module(facts):
    torch, version = _names("torch"), _names("torch.version")
    if not torch:
        return
    facts["torch.version"] = _text(torch.get("__version__"))
    for name, key in (("cuda", "torch.cuda"), ("hip", "torch.hip"), ("git_version", "torch.git")):
        facts[key] = _text(version.get(name), "none")
    facts["torch.debug"] = version.get("debug") is True
    strategy = _names("torch.multiprocessing").get("_sharing_strategy")
    if strategy is not None:
        facts["torch.sharing_strategy"] = _text(strategy)
    config = _names("torch._C").get("_show_config")
    if config is not None:
        _build(facts, config())
    numpy = _names("numpy")
    if numpy:
        facts["numpy.version"] = _text(numpy.get("__version__"))


def _text(value, otherwise="unknown"):
    return str.__str__(value) if issubclass(type(value), str) else otherwise


def _build(facts, text):
    """torch.__config__.show(): one line a library, then the build settings as KEY=VALUE."""
    for line in text.splitlines():
        line = line.strip().removeprefix("- ")
        if "Math Kernel Library" in line and "MKL-DNN" not in line:
            facts["torch.mkl"] = line.partition("Version ")[2].partition(" for ")[0] or line
        elif "MKL-DNN" in line or line.startswith("oneDNN"):
            facts["torch.onednn"] = line.partition(" v")[2].partition(" ")[0] or line
        elif line.startswith("OpenMP"):
            facts["torch.openmp"] = line.partition(" ")[2].partition(" ")[0]
        elif line.startswith("CPU capability"):
            facts["torch.cpu_capability"] = line.rpartition(" ")[2]
        elif line.startswith("Build settings"):
            settings = dict(item.strip().partition("=")[::2] for item in line.partition(":")[2].split(", "))
            for key in ("BLAS_INFO", "LAPACK_INFO", "BUILD_TYPE", "CUDNN_VERSION", "USE_OPENMP", "USE_MKLDNN"):
                if settings.get(key):
                    facts["torch.build." + key] = settings[key]


def _mapped(facts):
    with open("/proc/self/maps", "rb") as file:
        paths = {line.split(None, 5)[5].rstrip(b"\n") for line in file if b".so" in line and line.count(b"/")}
    names = sorted(path.decode("utf-8", "replace") for path in paths)

    def those(words):
        found = [_place(path) for path in names if any(word in _base_name(path) for word in words)]
        return ", ".join(found) or "none"

    facts["loaded.openmp"] = those(OPENMP)
    facts["loaded.blas"] = those(BLAS)
    allocator = [word for word in ALLOCATORS if any(word in _base_name(path) for path in names)]
    facts["loaded.allocator"] = ", ".join(allocator) or "libc"
    asked = posix.environ.get(b"LD_PRELOAD", b"").decode("utf-8", "replace").replace(":", " ").split()
    if asked:
        got = [_base_name(path) for path in names]
        # The loader goes on without a library that it does not find, and says so on standard error only.
        facts["loaded.preload"] = ", ".join(
            name if any(_same(name, one) for one in got) else name + " (not found)" for name in map(_base_name, asked)
        )


def _base_name(path):
    return path.rpartition("/")[2]


def _same(asked, mapped):
    """libx.so.2 is a link to libx.so.2.1.0 more often than not."""
    return (
        mapped.startswith(asked) or asked.startswith(mapped) or asked.partition(".so")[0] == mapped.partition(".so")[0]
    )


def _place(path):
    """The name of a library and what it came with: torch/lib, numpy.libs, or the system's folders."""
    folder, _, name = path.rpartition("/")
    for mark in ("/site-packages/", "/dist-packages/"):
        if mark in folder + "/":
            return (folder + "/").rpartition(mark)[2].partition("/")[0] + ":" + name
    return ("system:" if folder.startswith(("/usr/lib", "/lib")) else "other:") + name


# --- as a program, for `ullage snapshot` ------------------------------------------------------------------


def _without_importing(facts):
    """What torch/version.py says, and where multiprocessing starts by default."""
    import multiprocessing
    import re
    import sysconfig

    facts["python.start_method"] = multiprocessing.get_all_start_methods()[0]
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    kept = [
        word.strip("'") for word in options.split() if word.strip("'").startswith(("--with", "--enable", "--disable"))
    ]
    facts["python.build"] = " ".join(word for word in kept if "/" not in word) or "default"
    for folder in sys.path:
        try:
            with open((folder or ".") + "/torch/version.py", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except (OSError, ValueError):
            continue
        for name, key in (("__version__", "torch.version"), ("cuda", "torch.cuda"), ("git_version", "torch.git")):
            found = re.search(r"^%s(?:\s*:[^=]*)?\s*=\s*(?:'([^']*)'|(None))" % name, text, re.MULTILINE)
            if found:
                facts[key] = found.group(1) or "none"
        return


def _by_importing(facts):
    import importlib

    for name in ("torch", "numpy"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            facts[name + ".version"] = {"missing": "not installed" if error.name == name else "cannot be imported"}
        except Exception as error:
            facts[name + ".version"] = {"missing": "cannot be imported (%s)" % type(error).__name__}
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if numpy is not None:
        facts["numpy.version"] = numpy.__version__
        try:
            blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
            facts["numpy.blas"] = "%s %s" % (blas.get("name"), blas.get("version"))
        except Exception:
            pass  # numpy before 1.25 only prints it
    if torch is not None and hasattr(torch, "__version__"):
        import torch.multiprocessing

        facts["torch.threads"] = torch.get_num_threads()
        facts["torch.interop_threads"] = torch.get_num_interop_threads()
        facts["torch.sharing_strategy"] = torch.multiprocessing.get_sharing_strategy()


def main():
    import json

    def say(facts):
        # The parent reads until it has waited long enough: each line is whole.
        posix.write(out, (json.dumps(facts) + "\n").encode())

    # What a module prints as it is imported must not stand between the lines.
    out = posix.dup(1)
    posix.dup2(2, 1)
    facts = inside()
    # Nothing of torch is mapped yet.
    facts.pop("loaded.openmp", None)
    facts.pop("loaded.blas", None)
    try:
        _without_importing(facts)
    except Exception:
        pass
    say(facts)
    facts = {}
    _by_importing(facts)
    for part in (_torch_module, _mapped):
        try:
            part(facts)
        except Exception:
            pass
    say(facts)


if __name__ == "__main__":
    main()
