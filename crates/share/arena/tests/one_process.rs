//! An arena as its users see it, within one process.
#![allow(unsafe_code, clippy::unwrap_used)]

use std::os::fd::AsFd;
use ullage_arena::{Arena, ArenaError, Settings};

fn arena() -> Arena {
    Arena::create(Settings { reserve: 64 << 30, guard: Box::new(|_, _| Ok(())) }).unwrap()
}

fn fill(lease: &mut ullage_arena::Lease, byte: u8) {
    // SAFETY: the block was just allocated, and nobody else knows it.
    unsafe { lease.bytes_mut() }.fill(byte);
}

fn sum(lease: &ullage_arena::Lease) -> u64 {
    // SAFETY: nobody writes in these tests while a lease is read.
    unsafe { lease.bytes() }.iter().map(|byte| u64::from(*byte)).sum()
}

#[test]
fn what_was_sent_is_what_is_taken() {
    let arena = arena();
    for bytes in [0, 1, 63, 64, 65, 4096, 1 << 20, (64 << 20) + 3] {
        let mut block = arena.alloc(bytes).unwrap();
        assert_eq!(block.as_ptr() as usize % 64, 0);
        fill(&mut block, 3);
        let ticket = block.send(1).unwrap();
        let taken = arena.take(ticket).unwrap();
        assert_eq!((taken.len() as u64, sum(&taken)), (bytes, 3 * bytes));
        assert!(matches!(arena.take(ticket), Err(ArenaError::Stale { .. })), "a ticket is good for once");
    }
    assert_eq!(arena.report().in_use, 0);
}

#[test]
fn a_steady_stream_gets_the_same_bytes_again() {
    let arena = arena();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..1000 {
        let ticket = arena.alloc(1 << 20).unwrap().send(1).unwrap();
        seen.insert(ticket.offset);
        drop(arena.take(ticket).unwrap());
    }
    assert_eq!(seen.len(), 1);
}

#[test]
fn live_blocks_never_overlap_and_memory_is_little_more_than_what_was_in_use_at_once() {
    let arena = arena();
    let mut random = 88172645463325252u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut leases: Vec<(ullage_arena::Lease, u8)> = Vec::new();
    let mut most = 0;
    for round in 0..6000u32 {
        let bytes = 1u64 << (10 + next() % 9);
        let bytes = bytes + next() % bytes;
        let mut block = arena.alloc(bytes).unwrap();
        let byte = (round % 251) as u8;
        fill(&mut block, byte);
        let taken = arena.take(block.send(1).unwrap()).unwrap();
        leases.push((taken, byte));
        most = most.max(leases.iter().map(|(lease, _)| lease.len() as u64).sum::<u64>());
        if leases.len() > 30 {
            let (lease, byte) = leases.swap_remove((next() % 30) as usize);
            assert_eq!(sum(&lease), u64::from(byte) * lease.len() as u64, "somebody wrote into a live block");
        }
    }
    let committed = arena.report().committed;
    assert!(committed <= most * 5 / 4 + (1 << 20), "{committed} bytes for {most}");
}

#[test]
fn a_block_retained_by_its_producer_comes_home_when_both_have_ended() {
    let arena = arena();
    let block = arena.alloc(1000).unwrap();
    let ticket = block.send_shared(1).unwrap();
    assert!(block.send_shared(1).is_none(), "a ticket is out");
    let taken = arena.take(ticket).unwrap();
    assert_eq!(taken.as_ptr(), block.as_ptr());
    drop(taken);
    let again = block.send_shared(1).expect("it came back");
    drop(block);
    assert!(arena.report().in_use > 0);
    arena.discard(again);
    assert_eq!(arena.report().in_use, 0);
}

#[test]
fn a_retired_block_is_never_used_again() {
    let arena = arena();
    let block = arena.alloc(5000).unwrap();
    let taken = arena.take(block.send(1).unwrap()).unwrap();
    let place = taken.ticket().offset;
    taken.retire();
    drop(taken);
    for _ in 0..100 {
        assert_ne!(arena.alloc(5000).unwrap().ticket().offset, place);
    }
    assert!(arena.report().retired >= 5000);
}

#[test]
fn a_block_is_retired_by_an_address_inside_it_too() {
    let arena = arena();
    let before = arena.take(arena.alloc(9000).unwrap().send(1).unwrap()).unwrap();
    let taken = arena.take(arena.alloc(9000).unwrap().send(1).unwrap()).unwrap();
    let place = taken.ticket().offset;
    assert!(arena.retire_at(taken.as_ptr() as usize + 5000));
    assert!(
        !arena.retire_at(0) && !arena.retire_at(arena.address_of(place, 1).unwrap() as usize + (1 << 30))
    );
    drop((before, taken));
    assert_ne!(arena.alloc(9000).unwrap().ticket().offset, place);
}

#[test]
fn tickets_to_a_closed_channel_end_at_the_next_sweep() {
    let arena = arena();
    let channel = arena.open_channel();
    let ticket = arena.alloc(1 << 16).unwrap().send(channel).unwrap();
    arena.sweep();
    assert!(arena.report().in_use > 0, "it may still be taken");
    arena.close_channel(channel);
    arena.sweep();
    assert_eq!(arena.report().in_use, 0);
    assert!(arena.take(ticket).is_err());
}

#[test]
fn no_room_is_an_error_and_what_was_there_stays() {
    let settings = Settings {
        reserve: 8 << 30,
        guard: Box::new(|more, has| {
            if more + has > 32 << 20 {
                return Err(format!("the cgroup allows {}", 32 << 20));
            }
            Ok(())
        }),
    };
    let arena = Arena::create(settings).unwrap();
    let block = arena.alloc(16 << 20).unwrap();
    let error = arena.alloc(64 << 20).unwrap_err();
    assert!(error.to_string().contains("the cgroup allows"), "{error}");
    drop(block);
    drop(arena.alloc(10 << 20).unwrap());
    let small = Arena::create(Settings { reserve: 1 << 29, guard: Box::new(|_, _| Ok(())) }).unwrap();
    assert!(matches!(small.alloc(1 << 30), Err(ArenaError::ReserveUsedUp { .. })));
}

#[test]
fn trimming_gives_memory_back_and_the_bytes_can_be_used_again() {
    let arena = arena();
    drop(arena.alloc(32 << 20).unwrap());
    assert!(arena.trim() >= 31 << 20);
    assert_eq!(arena.trim(), 0, "nothing twice");
    let blocks = rustix::fs::fstat(arena.fd()).unwrap().st_blocks as u64 * 512;
    assert!(blocks < 4 << 20, "{blocks}");
    let mut block = arena.alloc(32 << 20).unwrap();
    fill(&mut block, 1);
    assert_eq!(sum(&block), 32 << 20);
}

#[test]
fn a_foreign_or_damaged_descriptor_is_refused() {
    let refused = |fd: std::os::fd::OwnedFd| {
        let error = Arena::attach(fd, Box::new(|_, _| Ok(()))).unwrap_err();
        assert!(matches!(error, ArenaError::Foreign { .. }), "{error}");
        error.to_string()
    };
    let null = std::fs::File::open("/dev/null").unwrap();
    assert!(refused(null.into()).contains("no memfd"));
    let flags = rustix::fs::MemfdFlags::ALLOW_SEALING;
    let plain = rustix::fs::memfd_create("other", flags).unwrap();
    rustix::fs::ftruncate(&plain, 1 << 30).unwrap();
    assert!(refused(plain.as_fd().try_clone_to_owned().unwrap()).contains("shrink"));
    rustix::fs::fcntl_add_seals(&plain, rustix::fs::SealFlags::SHRINK).unwrap();
    assert!(refused(plain).contains("does not begin"));

    let damaged = arena();
    let written = std::fs::File::from(damaged.fd().try_clone_to_owned().unwrap());
    std::os::unix::fs::FileExt::write_all_at(&written, &[9; 4], 8).unwrap();
    assert!(refused(damaged.fd().try_clone_to_owned().unwrap()).contains("another version"));
}

#[test]
fn tickets_that_lead_nowhere_are_refused() {
    let arena = arena();
    let good = arena.alloc(100).unwrap().send(1).unwrap();
    for bad in [
        ullage_arena::Ticket { offset: 0, ..good },
        ullage_arena::Ticket { offset: good.offset + 64, ..good },
        ullage_arena::Ticket { offset: u64::MAX - 63, ..good },
        ullage_arena::Ticket { generation: good.generation + 1, ..good },
        ullage_arena::Ticket { length: 1 << 40, ..good },
    ] {
        assert!(matches!(arena.take(bad), Err(ArenaError::Stale { .. })), "{bad:?}");
    }
    assert!(arena.take(good).is_ok());
}

#[test]
fn blocks_are_whole_however_memory_came_and_went() {
    let arena = arena();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let (mut leases, mut held, mut most): (Vec<(ullage_arena::Lease, u8)>, u64, u64) = (Vec::new(), 0, 0);
    for round in 0..6000u32 {
        let bytes = 1u64 << (10 + next() % 13);
        let bytes = bytes + next() % bytes;
        let mut block = arena.alloc(bytes).unwrap();
        let byte = (round % 251) as u8;
        // Its ends: a block that is shorter than it says, or lies over another, changes one of them.
        // SAFETY: just allocated.
        let whole = unsafe { block.bytes_mut() };
        whole[0] = byte;
        whole[bytes as usize - 1] = byte;
        let taken = arena.take(block.send(1).unwrap()).unwrap();
        held += bytes;
        most = most.max(held);
        leases.push((taken, byte));
        while held > 48 << 20 {
            let (lease, byte) = leases.swap_remove((next() as usize) % leases.len());
            // SAFETY: written above only.
            let bytes = unsafe { lease.bytes() };
            assert_eq!((bytes[0], bytes[bytes.len() - 1]), (byte, byte), "somebody wrote into a live block");
            held -= lease.len() as u64;
        }
        if round % 500 == 499 {
            arena.trim();
        }
    }
    let committed = arena.report().committed;
    assert!(committed <= most * 5 / 4 + (24 << 20), "{committed} bytes for {most}");
}
