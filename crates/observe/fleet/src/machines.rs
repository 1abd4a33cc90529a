//! Which facts does each node have, in little room? Nodes of a fleet agree in nearly all of two hundred facts: each value
//! stands once, and a node is a list of numbers.

use std::collections::{BTreeMap, HashMap};
use ullage_model::{Fact, Facts};

/// The facts of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machines {
    /// By name and value as text.
    numbers: HashMap<(String, String), u32>,
    values: Vec<(String, Fact)>,
    nodes: BTreeMap<String, Node>,
}

#[derive(Clone, Debug)]
struct Node {
    /// Of the recording that the facts are of.
    path: String,
    facts: Vec<u32>,
}

impl Machines {
    /// Takes the facts of a recording; of several of one node those of the first path count.
    pub(crate) fn add(&mut self, node: &str, path: &str, facts: &Facts) {
        if self.nodes.get(node).is_some_and(|known| known.path.as_str() <= path) {
            return;
        }
        let facts = facts.iter().map(|(name, fact)| self.number(name, fact)).collect();
        self.nodes.insert(node.to_owned(), Node { path: path.to_owned(), facts });
    }

    fn number(&mut self, name: &str, fact: &Fact) -> u32 {
        let next = self.values.len() as u32;
        let key = (name.to_owned(), format!("{fact:?}"));
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.values.push((name.to_owned(), fact.clone()));
        }
        number
    }

    /// The facts of a node.
    pub(crate) fn facts(&self, node: &str) -> Option<Facts> {
        let facts = &self.nodes.get(node)?.facts;
        Some(facts.iter().map(|number| self.values[*number as usize].clone()).collect())
    }

    /// How many of these nodes have each value, by name.
    pub(crate) fn counted<'a>(
        &self,
        nodes: impl Iterator<Item = &'a str>,
    ) -> BTreeMap<&str, Vec<(&Fact, usize)>> {
        let mut counts = vec![0usize; self.values.len()];
        for number in nodes.filter_map(|node| self.nodes.get(node)).flat_map(|node| &node.facts) {
            counts[*number as usize] += 1;
        }
        let mut by_name: BTreeMap<&str, Vec<(&Fact, usize)>> = BTreeMap::new();
        for ((name, fact), count) in self.values.iter().zip(counts).filter(|(_, count)| *count > 0) {
            by_name.entry(name).or_default().push((fact, count));
        }
        by_name
    }
}
