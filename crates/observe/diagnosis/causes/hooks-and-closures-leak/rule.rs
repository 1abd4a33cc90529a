//! Does a run show hooks-and-closures-leak? page.md says what that is, and how it differs from its look-alikes.

use crate::rule::retainers;

use crate::analysis::retainers::Kind;
use crate::analysis::{Analysis, Collection, HeldByC, RemedyContext};
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    retainers::judge(analysis, &RULE, Kind::Hook)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let name = context.retainer.as_ref().and_then(|retainer| retainer.name.as_deref());
    if name.is_some_and(|name| name.starts_with("weakref.finalize.")) {
        return vec![
            Fix::new(
                "Give each finalizer what it ends, and neither the object nor a method of it",
                "weakref.finalize(self, os.close, self.fd)  # not weakref.finalize(self, self.close)",
            ),
            Fix::new("Or call it when the object is done with", "finalizer()"),
        ];
    }
    if name.is_some_and(|name| name.ends_with("._scheduled")) {
        return vec![
            Fix::new(
                "Cancel each timer when what it is for is done",
                "timer = loop.call_later(3600, cleanup, key)  # and when it is done with: timer.cancel()",
            ),
            Fix::new(
                "Or let it keep neither the caller's context nor the object",
                "loop.call_later(3600, cleanup, key, context=contextvars.Context())",
            ),
        ];
    }
    match context.retainer.as_ref().and_then(|retainer| retainer.held_by_c) {
        Some(HeldByC::Hook) => {
            return vec![
                Fix::new(
                    "Remove each hook of a graph after its backward pass",
                    "handle = tensor.grad_fn.register_hook(hook)\nloss.backward()\nhandle.remove()",
                ),
                Fix::new(
                    "Or let it refer weakly to what it is called for",
                    "reference = weakref.ref(self)  # and in the hook: owner = reference()",
                ),
            ];
        }
        Some(HeldByC::Callback) => {
            return vec![
                Fix::new(
                    "Take each registration back when what it is for is done, and not only mark that as closed",
                    "atexit.unregister(self._close)",
                ),
                Fix::new(
                    "Or register once, and refer weakly to what is to be closed",
                    "open_runs = weakref.WeakSet()\natexit.register(lambda: [run.close() for run in list(open_runs)])",
                ),
            ];
        }
        None => {}
    }
    if context.retainer.as_ref().is_some_and(|retainer| retainer.is_future) {
        let name = name.unwrap_or("future");
        if let Some(name) = name.strip_suffix("._done_callbacks") {
            return vec![Fix::new(
                "Add one callback for all, and remove from what it calls each that is done",
                format!(
                    "{name}.add_done_callback(lambda future: [call(future) for call in waiting.values()])"
                ),
            )];
        }
        let name = name.strip_suffix("._callbacks").unwrap_or(name);
        return vec![
            Fix::new(
                "Remove each callback when what it was added for is done",
                format!("{name}.remove_done_callback(callback)"),
            ),
            Fix::new(
                "Or wait for both, which adds and removes them",
                format!("await asyncio.wait([task, {name}], return_when=asyncio.FIRST_COMPLETED)"),
            ),
        ];
    }
    if let Some(retainer) = context.retainer.as_ref().filter(|retainer| retainer.of_callables) {
        let name = retainer.name.as_deref().unwrap_or("callbacks");
        let remove = match retainer.collection {
            Collection::Dict => format!("{name}.pop(key)"),
            _ => format!("{name}.remove(callback)"),
        };
        return vec![
            Fix::new(
                "Remove each callback with what it was made for, before another one takes its place",
                remove,
            ),
            Fix::new(
                "Or refer weakly to what it is called for",
                "reference = weakref.ref(axes)  # and in the callback: axes = reference()",
            ),
        ];
    }
    vec![
        Fix::new(
            "Remove each hook after use",
            "handle = module.register_forward_hook(hook)\ntry:\n    module(batch)\nfinally:\n    handle.remove()",
        ),
        Fix::new(
            "Or register it once, before the loop",
            "module.register_forward_hook(hook)  # and in the hook: features[name] = output.detach()",
        ),
    ]
}
