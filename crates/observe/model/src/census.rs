//! What the agent found that holds the memory by which a Python grows: containers that become longer, values that become
//! larger, and autograd graphs that reach ever further back.
//!
//! Written by `python/ullage/agent/census.py`. Bytes are estimated from some elements that stand for all.

use serde::{Deserialize, Serialize};

/// One census, taken while growth went on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Census {
    /// The first is 1. What holds the growth is known from the second on.
    pub number: u32,
    /// Private bytes of the process at that moment.
    pub private: u64,
    /// Of these, what came since the agent's first look.
    pub grown: u64,
    /// Objects that the collector lists; none where they were not gone through.
    pub objects: Option<u64>,
    /// The collector is switched on.
    pub collects: bool,
    /// New objects after which it works; 0 is never.
    pub collects_after: u64,
    /// What it would have found; none where it is at work.
    pub garbage: Option<Garbage>,
    /// Objects that `gc.freeze()` has put where they are never collected; none where they were not counted.
    pub frozen: Option<u64>,
    /// This torch tells what a graph has saved, so that nothing seen is nothing saved.
    pub sees_saved: bool,
    /// What holds most of what came.
    #[serde(rename = "holders")]
    pub retainers: Vec<Retainer>,
    /// Tensors whose graph becomes longer.
    pub graphs: Vec<HeldGraph>,
    /// Tensors that the collector lists.
    pub tensors: Option<TensorCount>,
    /// Leaves whose gradient carries a graph.
    pub grads: Option<GraphGradients>,
    /// There was no time for all of it: what an earlier one found may still be so.
    pub cut: bool,
    /// What it cost: CPU time, microseconds.
    pub took_us: u64,
}

/// Leaves whose gradient carries a graph, as `backward(create_graph=True)` leaves them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphGradients {
    /// How many Python knows.
    pub with_graph: u64,
    /// Shape and type of one of them; empty where there is none.
    pub tensor: String,
    /// torch has warned in this process that such a gradient and its leaf hold each other.
    pub warned: bool,
}

/// A container that has become longer, or a value under a name that has become larger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retainer {
    /// As the program reaches it: `losses`, `self.cache`, `__main__.HISTORY`; empty where no name was found.
    pub name: String,
    /// The running function whose local it begins with, `train(), train.py:31`; empty for a global.
    pub place: String,
    /// The class whose attribute it is.
    pub owner: String,
    /// Where the program adds to it, `train.py:27`; empty where that was not found.
    pub line: String,
    /// Its type; `lru_cache` for the results that such a function keeps.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What most of its elements are, `Tensor [1024, 256] float32`.
    pub element: String,
    /// Elements, or bytes of a value.
    pub length: u64,
    /// The same when it was first seen; none in the first census.
    pub before: Option<u64>,
    /// Those are the elements of its elements: its own number stands still.
    pub nested: bool,
    /// Its first elements left it while it grew: somebody takes from it.
    pub drained: bool,
    /// Code of the program takes from its left: a queue, though nobody may take from it now.
    pub taken_from: bool,
    /// And takes them in order, by a number that it counts or was asked for: what came early waits for one that is late.
    pub in_order: bool,
    /// Its keys are numbers one after the other, and no code asks whether it has one.
    pub numbered: bool,
    /// Those are all objects that it leads to, through any number of others.
    pub deep: bool,
    /// What it keeps in memory.
    pub bytes: u64,
    /// What its elements show of that.
    pub own_bytes: u64,
    /// Of the bytes, what came since it was first seen.
    pub more_bytes: u64,
    /// Saved for a backward pass by the graphs of the elements that came since.
    pub hidden_bytes: u64,
    /// By how much the process grew in that time.
    pub of_bytes: u64,
    /// Share of its elements that carry a graph.
    pub graph: f64,
    /// Share that shows a small part of a storage that it keeps.
    pub views: f64,
    /// Share that are exceptions, with the frames that they passed.
    pub errors: f64,
    /// A hook of a model adds to it.
    pub by_hook: bool,
    /// The constructor of the object that has it adds to it, and has not returned yet.
    pub in_constructor: bool,
    /// It was made with a greatest length.
    pub bounded: bool,
    /// Of so many instances the same attribute, and the figures those of all; 0 of one.
    pub alike: u64,
}

/// A tensor under a name whose graph reaches further back than before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldGraph {
    /// As the program reaches it.
    pub name: String,
    /// The running function whose local it begins with.
    pub place: String,
    /// The class whose attribute it is.
    pub owner: String,
    /// Where the program computes it from itself.
    pub line: String,
    /// Operations from it back to the oldest that it keeps.
    pub operations: u64,
    /// The same when the name was first seen.
    pub before: u64,
    /// What these saved for a backward pass, as far as it can be seen.
    pub more_bytes: u64,
    /// By how much the process grew in that time.
    pub of_bytes: u64,
}

/// Tensors of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TensorCount {
    /// How many.
    pub count: u64,
    /// Their storages, each once.
    pub bytes: u64,
    /// How many carry a graph.
    pub with_graph: u64,
    /// How many show a small part of a storage.
    pub views: u64,
    /// What these keep.
    #[serde(rename = "kept_by_views")]
    pub retained_by_views: u64,
    /// The groups that grew most.
    pub groups: Vec<TensorGroup>,
}

/// Tensors of one shape and type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TensorGroup {
    /// `[1024, 256] float32 with graph`.
    pub tensors: String,
    /// How many.
    pub count: u64,
    /// What they keep.
    pub bytes: u64,
    /// How many there were at the first such census.
    pub count_before: Option<u64>,
    /// What they kept then.
    pub bytes_before: Option<u64>,
}

/// Objects in a circle that nothing outside refers to, counted in a part of the youngest ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Garbage {
    /// Objects that came since the last collection, and still are there.
    pub objects: u64,
    /// How many of them were looked at.
    #[serde(rename = "looked")]
    pub inspected: u64,
    /// How many of these are garbage.
    pub garbage: u64,
    /// What all garbage keeps, estimated from those.
    pub bytes: u64,
    /// These are those that came last, also those that lived through collections, which is where garbage waits longest.
    pub old: bool,
}

/// Where what lives on was allocated, in some seconds of growth that no name holds. Written by `python/ullage/agent/sites.py`.
/// Tensors are not in it: their storages are not Python's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sites {
    /// For how long it was traced.
    pub seconds: f64,
    /// By how much the private memory of the process grew meanwhile, bytes.
    pub came: i64,
    /// Traced, and still in use at the end.
    pub bytes: u64,
    /// In so many blocks.
    pub blocks: u64,
    /// The lines that allocated most of it.
    pub sites: Vec<Site>,
}

/// A line of the program, and what it allocated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Site {
    /// `train.py:27`.
    pub line: String,
    /// Still in use.
    pub bytes: u64,
    /// In so many blocks.
    pub blocks: u64,
}
