//! Which files import each other? The strongly connected components of a graph, by Tarjan's algorithm.

use std::collections::{BTreeMap, BTreeSet};

/// Files by path, each with those that it imports.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// Circles of two files and more, the largest first.
pub(crate) fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let names: Vec<&String> = graph.keys().collect();
    let numbers: BTreeMap<&String, usize> = names.iter().enumerate().map(|(n, name)| (*name, n)).collect();
    let edges: Vec<Vec<usize>> =
        graph.values().map(|to| to.iter().filter_map(|name| numbers.get(name).copied()).collect()).collect();
    let mut found: Vec<Vec<String>> = components(&edges)
        .into_iter()
        .filter(|component| component.len() > 1)
        .map(|component| {
            let mut files: Vec<String> = component.into_iter().map(|n| names[n].clone()).collect();
            files.sort();
            files
        })
        .collect();
    found.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    found
}

struct State<'g> {
    edges: &'g [Vec<usize>],
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    stack: Vec<usize>,
    on_stack: Vec<bool>,
    next: usize,
    found: Vec<Vec<usize>>,
}

fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let all = edges.len();
    let mut state = State {
        edges,
        index: vec![None; all],
        low: vec![0; all],
        stack: Vec::new(),
        on_stack: vec![false; all],
        next: 0,
        found: Vec::new(),
    };
    for node in 0..all {
        if state.index[node].is_none() {
            visit(&mut state, node);
        }
    }
    state.found
}

fn visit(state: &mut State, node: usize) {
    state.index[node] = Some(state.next);
    state.low[node] = state.next;
    state.next += 1;
    state.stack.push(node);
    state.on_stack[node] = true;
    let edges = state.edges;
    for &to in &edges[node] {
        match state.index[to] {
            None => {
                visit(state, to);
                state.low[node] = state.low[node].min(state.low[to]);
            }
            Some(index) if state.on_stack[to] => state.low[node] = state.low[node].min(index),
            Some(_) => {}
        }
    }
    if Some(state.low[node]) != state.index[node] {
        return;
    }
    let mut component = Vec::new();
    while let Some(member) = state.stack.pop() {
        state.on_stack[member] = false;
        component.push(member);
        if member == node {
            break;
        }
    }
    state.found.push(component);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_reach_each_other_are_a_circle() {
        let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "a")];
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(from.into()).or_default().insert(to.into());
            graph.entry(to.into()).or_default();
        }
        assert_eq!(circles(&graph), [vec!["a", "b", "c"], vec!["d", "e"]]);
    }
}
