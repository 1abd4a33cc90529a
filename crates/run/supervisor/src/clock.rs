//! How far may this machine's clock be from the true time? As the kernel itself bounds it (adjtimex(2)).
//!
//! A daemon (chrony, ntpd, systemd-timesyncd) tells the kernel how well it follows its servers, and the kernel lets the bound
//! grow by 500 ppm from then on. Without a daemon it stands at 16 s, and the clock is called unsynchronised.

use nix::libc;

/// What the kernel says of its clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Seconds that it may be off, either way.
    pub error_s: f64,
    /// A daemon keeps it.
    pub synchronized: bool,
}

/// Reads it; none where the kernel refuses, as in some containers.
pub fn clock() -> Option<Clock> {
    let mut state = std::mem::MaybeUninit::<libc::timex>::zeroed();
    #[expect(unsafe_code, reason = "nix and rustix have no adjtimex")]
    // SAFETY: the pointer is that of a live timex. All its bits are zero, modes among them, so that the call changes
    // nothing and only fills it.
    let answer = unsafe { libc::adjtimex(state.as_mut_ptr()) };
    if answer < 0 {
        return None;
    }
    #[expect(unsafe_code, reason = "see above")]
    // SAFETY: all bits zero are a valid timex, and the kernel has filled it.
    let state = unsafe { state.assume_init() };
    let synchronized = answer != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0;
    Some(Clock { error_s: state.maxerror as f64 / 1e6, synchronized })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_a_plausible_one() {
        // A sandbox may refuse; the kernel never says more than 16 s (NTP_PHASE_LIMIT).
        if let Some(clock) = clock() {
            assert!((0.0..=17.0).contains(&clock.error_s), "{clock:?}");
            assert!(clock.synchronized || clock.error_s > 0.0, "{clock:?}");
        }
    }
}
