//! What do a run's shared segments look like as JSON? Part of schema 1; see [`crate::schema`] for what stable means.

use crate::schema::{ProcessJson, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use ullage_model::{LeftBehind, SegmentCreator, SegmentPlace, SegmentSeen, SegmentSummary, SegmentTotal};

#[derive(Serialize)]
pub(crate) struct SegmentsJson<'a> {
    at: f64,
    count: u64,
    bytes: u64,
    #[serde(rename = "not_told")]
    unmeasured: u64,
    orphans: TotalJson,
    others: TotalJson,
    by_kind: BTreeMap<&'static str, TotalJson>,
    by_creator: Vec<ByCreatorJson<'a>>,
    largest: Vec<SegmentJson<'a>>,
    tmpfs: Vec<PlaceJson<'a>>,
    left_behind: Value<LeftBehindJson<'a>>,
}

#[derive(Serialize)]
struct TotalJson {
    count: u64,
    bytes: u64,
    #[serde(rename = "not_told")]
    unmeasured: u64,
}

#[derive(Serialize)]
struct ByCreatorJson<'a> {
    creator: CreatorJson<'a>,
    #[serde(flatten)]
    total: TotalJson,
}

/// `of`: job, outside, gone, unknown.
#[derive(Serialize)]
struct CreatorJson<'a> {
    of: &'static str,
    pid: Option<i32>,
    process: Option<ProcessJson<'a>>,
    ended: Option<bool>,
    by: Option<&'static str>,
}

#[derive(Serialize)]
struct SegmentJson<'a> {
    kind: &'static str,
    name: &'a str,
    count: u64,
    device: u64,
    inode: u64,
    size_bytes: u64,
    allocated_bytes: Value<u64>,
    at_least: bool,
    deleted: bool,
    before: bool,
    orphan: bool,
    creator: CreatorJson<'a>,
    mappers: Vec<ProcessJson<'a>>,
    #[serde(rename = "holders")]
    openers: Vec<ProcessJson<'a>>,
}

#[derive(Serialize)]
struct PlaceJson<'a> {
    path: &'a str,
    used_bytes: u64,
    #[serde(rename = "told_bytes")]
    attributed_bytes: u64,
}

#[derive(Serialize)]
struct LeftBehindJson<'a> {
    count: u64,
    bytes: u64,
    segments: Vec<SegmentJson<'a>>,
    managed: ManagedJson<'a>,
}

#[derive(Serialize)]
struct ManagedJson<'a> {
    #[serde(flatten)]
    total: TotalJson,
    managers: Vec<ProcessJson<'a>>,
}

impl From<SegmentTotal> for TotalJson {
    fn from(total: SegmentTotal) -> Self {
        TotalJson { count: total.count, bytes: total.bytes, unmeasured: total.unmeasured }
    }
}

impl<'a> From<&'a SegmentSummary> for SegmentsJson<'a> {
    fn from(summary: &'a SegmentSummary) -> Self {
        let SegmentTotal { count, bytes, unmeasured } = summary.total;
        SegmentsJson {
            at: summary.at.seconds(),
            count,
            bytes,
            unmeasured,
            orphans: summary.orphans.into(),
            others: summary.others.into(),
            by_kind: summary.by_kind.iter().map(|(kind, total)| (kind.word(), (*total).into())).collect(),
            by_creator: summary
                .by_creator
                .iter()
                .map(|(creator, total)| ByCreatorJson { creator: creator.into(), total: (*total).into() })
                .collect(),
            largest: summary.largest.iter().map(SegmentJson::from).collect(),
            tmpfs: summary.places.iter().map(PlaceJson::from).collect(),
            left_behind: Value::or(
                summary.left_behind.as_ref().map(LeftBehindJson::from),
                "the end was not seen",
            ),
        }
    }
}

impl<'a> From<&'a SegmentCreator> for CreatorJson<'a> {
    fn from(creator: &'a SegmentCreator) -> Self {
        let empty = CreatorJson { of: "unknown", pid: None, process: None, ended: None, by: None };
        match creator {
            SegmentCreator::Job { process, ended, by } => CreatorJson {
                of: "job",
                pid: Some(process.id.pid),
                process: Some(process.into()),
                ended: Some(*ended),
                by: Some(by.word()),
            },
            SegmentCreator::Outside { id, by } => CreatorJson {
                of: "outside",
                pid: Some(id.pid),
                ended: Some(false),
                by: Some(by.word()),
                ..empty
            },
            SegmentCreator::Gone { pid, by } => {
                CreatorJson { of: "gone", pid: Some(*pid), ended: Some(true), by: Some(by.word()), ..empty }
            }
            SegmentCreator::Unknown(_) => empty,
        }
    }
}

impl<'a> From<&'a SegmentSeen> for SegmentJson<'a> {
    fn from(seen: &'a SegmentSeen) -> Self {
        let segment = &seen.segment;
        SegmentJson {
            kind: segment.kind.word(),
            name: &segment.name,
            count: segment.count,
            device: segment.device,
            inode: segment.inode,
            size_bytes: segment.size.0,
            allocated_bytes: Value::of(&segment.allocated, |bytes| bytes.0),
            at_least: segment.at_least,
            deleted: segment.deleted,
            before: segment.before,
            orphan: seen.orphan,
            creator: (&seen.creator).into(),
            mappers: seen.mappers.iter().map(ProcessJson::from).collect(),
            openers: seen.openers.iter().map(ProcessJson::from).collect(),
        }
    }
}

impl<'a> From<&'a SegmentPlace> for PlaceJson<'a> {
    fn from(place: &'a SegmentPlace) -> Self {
        PlaceJson { path: &place.path, used_bytes: place.used, attributed_bytes: place.attributed }
    }
}

impl<'a> From<&'a LeftBehind> for LeftBehindJson<'a> {
    fn from(left: &'a LeftBehind) -> Self {
        LeftBehindJson {
            count: left.total.count,
            bytes: left.total.bytes,
            segments: left.largest.iter().map(SegmentJson::from).collect(),
            managed: ManagedJson {
                total: left.managed.into(),
                managers: left.managers.iter().map(ProcessJson::from).collect(),
            },
        }
    }
}
