//! Does a run show numpy-object-pandas-conversion? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::rule::finding::no_memory_in;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let doing = "converting a file or table into Python objects";
    no_memory_in(analysis, &RULE, doing, converts, |_| None)
}

fn converts(failure: &Failure) -> bool {
    failure.calls("json/__init__.py", &["load", "loads"])
        || failure.calls("json/decoder.py", &["decode", "raw_decode"])
        || failure.calls("pandas/io/json/_json.py", &["read_json"])
        || failure.calls("pandas/io/parsers/readers.py", &["read_csv", "read_table"])
        || failure.calls_native(&["tolist", "to_pylist", "to_pydict", "orjson.loads", "ujson.loads"])
            // A list of indices is a cause of its own.
            && !failure.passes("torch/utils/data/")
        || failure.calls("pandas/core/frame.py", &["from_records", "to_dict", "to_records"])
        // numpy's own words; pandas hands them on.
        || failure.text().contains("and data type object")
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Read a line at a time, into an array of numbers",
            "values = array.array(\"f\")\nfor line in open(path):  # one JSON value a line\n    values.extend(json.loads(line))",
        ),
        Fix::new(
            "pandas: read in parts, with types other than object",
            "for part in pd.read_csv(path, dtype={\"label\": \"category\", \"text\": \"string[pyarrow]\"}, chunksize=100_000):",
        ),
        Fix::new(
            "Convert once, and map the result in later jobs",
            "np.save(\"values.npy\", np.asarray(values, dtype=np.float32))\nvalues = np.load(\"values.npy\", mmap_mode=\"r\")",
        ),
    ]
}
