//! Which exit status does a shell see for how COMMAND ended?

use ullage_model::Ending;

/// The job's own code, or 128 + N for death by signal N, as shells report it. An unseen ending is 125:
/// ullage failed at what it promised.
pub fn exit_status(ending: Ending) -> u8 {
    match ending {
        Ending::Exited(code) => (code & 0xff) as u8,
        Ending::Signaled(signal) => 128u8.wrapping_add(signal as u8),
        Ending::NotSeen(_) => 125,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::Missing;

    #[test]
    fn statuses_are_those_of_a_shell() {
        assert_eq!(exit_status(Ending::Exited(77)), 77);
        assert_eq!(exit_status(Ending::Signaled(9)), 137);
        assert_eq!(exit_status(Ending::Signaled(11)), 139);
        assert_eq!(exit_status(Ending::NotSeen(Missing::Vanished)), 125);
    }
}
