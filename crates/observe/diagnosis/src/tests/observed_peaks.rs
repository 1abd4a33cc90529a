//! What a job met itself goes before what ullage was given.

use super::build;
use crate::observed_peaks;
use ullage_model::{AgentMessage, At, Event, EventKind, Fact, Facts, Item};

#[test]
fn what_the_job_itself_met_goes_before_what_ullage_was_given() {
    let built = build::Run::new();
    let (mut run, mut timeline) = (built.facts.clone(), built.timeline());
    run.machine.others.insert("limit.nofile.soft".into(), Fact::Number(65536));
    run.environment.insert("MALLOC_ARENA_MAX".into(), "2".into());
    let facts = observed_peaks(&run, &timeline).facts;
    assert_eq!(facts["limit.nofile.soft"], Fact::Number(1024));
    assert_eq!(facts["env.MALLOC_ARENA_MAX"], "2".into());
    let inside = Facts::from([("env.OMP_NUM_THREADS".to_owned(), "1".into())]);
    timeline.push(Item::Event(Event {
        at: At::default(),
        what: EventKind::Agent { id: None, pid: 1, message: AgentMessage::Inside { facts: inside } },
    }));
    let facts = observed_peaks(&run, &timeline).facts;
    assert_eq!(facts["env.OMP_NUM_THREADS"], "1".into());
    assert!(!facts.contains_key("env.MALLOC_ARENA_MAX"), "the job does not have it");
}
