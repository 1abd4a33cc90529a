use super::*;
use ullage_model::{Finding, MemorySummary, Outcome, OutcomeKind, Proof, RunId, Severity, Symptom, Tie};

fn side(name: &str, facts: &[(&str, Fact)]) -> Side {
    let base = [("limit.nofile.soft", Fact::Number(65536)), ("cores.allowed", Fact::Number(8))];
    let facts = base.iter().chain(facts).map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect();
    Side { name: name.into(), facts, command: None, seen: None }
}

fn run(side: Side, cause: Option<&str>, peaks: &[(&str, f64)]) -> Side {
    let finding = |cause: &str| Finding {
        cause: cause.into(),
        title: format!("title of {cause}"),
        headline: format!("title of {cause}"),
        severity: Severity::Fatal,
        proof: Proof::SeenInside,
        process: None,
        at: None,
        evidence: vec![],
        fixes: vec![],
        explains: vec![],
        beyond_its_process: false,
    };
    let code = i32::from(cause.is_some());
    let verdict = Verdict {
        run: RunId::default(),
        command: vec![],
        outcome: Outcome { code: Some(code), ..Outcome::of(OutcomeKind::Exit) },
        healthy: cause.is_none(),
        findings: cause.into_iter().map(finding).collect(),
        limits: vec![],
        memory: MemorySummary::default(),
        segments: None,
        growth: None,
        first_failure: None,
        undetermined: vec![],
        not_seen: vec![],
        fixes: vec![],
        cost_cpu_share: None,
        cost_peak_rss: None,
        marks: Vec::new(),
        attempts: Vec::new(),
        duration_s: None,
    };
    let peaks = peaks.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Side { command: Some("python train.py".into()), seen: Some(Seen { verdict, peaks }), ..side }
}

fn one(good: &Side, bad: &Side) -> Against {
    compare(good, std::slice::from_ref(bad)).others.remove(0)
}

#[test]
fn the_boot_and_the_clock_explain_nothing() {
    let facts =
        [("boot.id", "a".into()), ("clock.error_s", "0.01".into()), ("clock.synchronized", true.into())];
    let (good, bad) = (side("good", &facts), side("bad", &[("boot.id", "b".into())]));
    for against in [one(&good, &bad), one(&bad, &good), one(&side("snapshot", &[]), &good)] {
        assert_eq!(against.same, 2);
        assert!(against.differences.is_empty() && against.unimportant.is_empty(), "{against:?}");
        assert!(against.not_compared.is_empty(), "{against:?}");
    }
}

fn first(against: &Against) -> &str {
    against.differences.first().map_or("none", |one| &one.change.fact)
}

#[test]
fn machines_that_are_the_same_have_no_difference() {
    let facts = [("env.MALLOC_ARENA_MAX", "2".into()), ("gpu.driver", Fact::missing("no GPU"))];
    let against = one(&side("a", &facts), &side("b", &facts));
    assert_eq!((against.differences.len(), against.unimportant.len(), against.same), (0, 0, 3));
    assert_eq!(against.not_compared.len(), 1, "what neither knows is not the same");
}

#[test]
fn what_the_failing_run_came_to_goes_before_what_is_more_often_the_reason() {
    let good = run(side("a", &[("shm.size", Fact::Number(8 << 30))]), None, &[("descriptors", 900.0)]);
    let bad = [("shm.size", Fact::Number(6 << 30)), ("limit.nofile.soft", Fact::Number(256))];
    let bad = run(
        side("b", &bad),
        Some("nofile-exhausted-shared-tensors"),
        &[("descriptors", 256.0), ("shm_bytes", 1e6)],
    );
    let against = one(&good, &bad);
    assert_eq!(first(&against), "limit.nofile.soft");
    assert_eq!(against.differences[0].strength, Strength::Explains);
    assert!(against.differences[0].ties.contains(&Tie::Met {
        figure: "descriptors".into(),
        used: 256,
        limit: 256
    }));
    assert_eq!(against.differences[0].test, "(ulimit -n 65536; python train.py)");
    assert!(
        !against.differences.iter().any(|one| one.strength > Strength::Possible && one.rank > 1),
        "/dev/shm was hardly used"
    );
}

#[test]
fn more_room_explains_no_failure() {
    let good = run(side("a", &[("limit.nofile.soft", Fact::Number(256))]), None, &[("descriptors", 90.0)]);
    let bad = run(side("b", &[]), Some("nofile-exhausted-shared-tensors"), &[("descriptors", 65536.0)]);
    let against = one(&good, &bad);
    assert!(
        against.differences.iter().all(|one| one.strength == Strength::Possible),
        "{:?}",
        against.differences
    );
}

#[test]
fn without_a_finding_the_figure_that_moved_decides() {
    let peaks = |memory: f64| [("memory", memory), ("descriptors", 40.0)];
    let good = run(side("a", &[("env.MALLOC_ARENA_MAX", "1".into())]), None, &peaks(319e6));
    let bad = run(side("b", &[("sysctl.kernel.pid_max", Fact::Number(32768))]), None, &peaks(560e6));
    let mut good = good;
    good.facts.insert("sysctl.kernel.pid_max".into(), Fact::Number(4_194_304));
    let against = one(&good, &bad);
    assert_eq!(first(&against), "env.MALLOC_ARENA_MAX");
    assert_eq!(against.differences[0].change.bad, "not set".into());
    assert!(matches!(&against.symptoms[0], Symptom::Figure { figure, .. } if figure == "memory"));
    assert_eq!(against.differences[0].test, "env MALLOC_ARENA_MAX='1' python train.py");
}

#[test]
fn what_comes_with_a_change_stands_under_it() {
    let of = |torch: &str, omp: &str| {
        [("torch.version", torch.into()), ("loaded.openmp", omp.into()), ("package.torch", torch.into())]
    };
    let against = one(
        &side("a", &of("2.13.0", "torch:libgomp.so.1")),
        &side("b", &of("2.6.0", "torch:libgomp-a34.so.1")),
    );
    assert_eq!(against.differences.len(), 1, "{:?}", against.differences);
    let with: Vec<&str> = against.differences[0].with.iter().map(|change| change.fact.as_str()).collect();
    assert_eq!((first(&against), with), ("torch.version", vec!["loaded.openmp"]));
    assert_eq!(against.unimportant.len(), 1, "the package is told by torch.version");
}

#[test]
fn names_that_nobody_knows_are_counted_not_ranked() {
    let of = |n: &str| [("package.black", n.into()), ("shm.used", Fact::Number(n.len() as u64))];
    let against = one(&side("a", &of("1")), &side("b", &of("22")));
    assert_eq!((against.differences.len(), against.unimportant.len()), (0, 2));
}

#[test]
fn a_version_that_is_known_to_leak_is_reported() {
    let against = one(
        &side("a", &[("package.h5py", "3.11.0".into())]),
        &side("b", &[("package.h5py", "3.4.0".into())]),
    );
    assert!(matches!(&against.differences[0].ties[0], Tie::KnownBad { .. }));
    assert_eq!(against.differences[0].strength, Strength::Likely);
}

#[test]
fn remedies_are_tried_by_the_command_that_applies_them() {
    let test = |good: Fact, command: Option<&str>| {
        let mut good = side("a", &[("env.ULLAGE_FIX", good)]);
        let mut bad = side("b", &[("env.ULLAGE_FIX", "arena".into())]);
        (good.command, bad.command) = (command.map(str::to_owned), command.map(str::to_owned));
        one(&good, &bad).differences[0].test.clone()
    };
    assert_eq!(
        test("arena,nofile".into(), Some("python a.py")),
        "ullage run --fix=arena,nofile -- python a.py"
    );
    assert_eq!(test("nofile".into(), None), "ullage run --fix=nofile -- python train.py");
    assert_eq!(test("not set".into(), None), "env -u ULLAGE_FIX ullage run -- python train.py");
}
