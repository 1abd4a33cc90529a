//! Which pid does the name of a file in /dev/shm carry?
//!
//! ```text
//! torch_4711_1804289383_0                  torch: who made the tensor's storage
//! pym-4711-x1y2z3                          CPython, multiprocessing.heap: Array, Value
//! sem.loky-4711-x1y2                       joblib's loky
//! joblib_memmapping_folder_4711_ab_cd/…    joblib
//! __KMP_REGISTERED_LIB_4711_1000           LLVM's and Intel's OpenMP
//! psm_1a2b3c4d  sem.mp-x1y2z3  nccl-AbCdEf none: CPython's SharedMemory and semaphores, NCCL
//! ```
//! The surprise: it is the pid in the maker's own pid namespace, and it may have been given to another process since.

use crate::scan::number;

/// Beginnings of names that a pid follows, and what ends the pid.
const WITH_PID: [(&[u8], u8); 5] = [
    (b"torch_", b'_'),
    (b"pym-", b'-'),
    (b"sem.loky-", b'-'),
    (b"joblib_memmapping_folder_", b'_'),
    (b"__KMP_REGISTERED_LIB_", b'_'),
];

/// The pid, where this name is of a known form that carries one.
pub fn pid_in_name(name: &[u8]) -> Option<i32> {
    WITH_PID.iter().find_map(|(beginning, end)| {
        let rest = name.strip_prefix(*beginning)?;
        let digits = rest.iter().position(|byte| byte == end)?;
        number(&rest[..digits]).and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_forms_carry_their_pid() {
        for (name, pid) in [
            ("torch_4711_1804289383_0", Some(4711)),
            ("pym-12-x1y2", Some(12)),
            ("sem.loky-33-ab", Some(33)),
            ("joblib_memmapping_folder_9_ab_cd/3.pkl", Some(9)),
            ("__KMP_REGISTERED_LIB_77_1000", Some(77)),
            ("psm_1a2b3c4d", None),
            ("sem.mp-x1y2", None),
            ("torch_", None),
            ("torch_x_1_2", None),
            ("torch_0_1_2", None),
            ("torch_99999999999_1_2", None),
            ("mytorch_1_2_3", None),
        ] {
            assert_eq!(pid_in_name(name.as_bytes()), pid, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            pid_in_name(&bytes);
        }

        #[test]
        fn every_pid_comes_back(pid in 1..i32::MAX) {
            prop_assert_eq!(pid_in_name(format!("torch_{pid}_1_2").as_bytes()), Some(pid));
        }
    }
}
