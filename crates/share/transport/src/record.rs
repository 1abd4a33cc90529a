//! What goes through a channel's pipe: one record of a fixed size a message.
//!
//! 32 bytes divide both a pipe's page and PIPE_BUF: a write is all or nothing (pipe(7)), and no reader ever gets
//! half a record, however many of them there are.

use ullage_arena::Ticket;

/// Bytes of a record.
pub const RECORD: usize = 32;

/// A ticket, and what its reader needs to know beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The block.
    pub ticket: Ticket,
    /// What is in it; the two sides agree on the meaning.
    pub kind: u32,
    /// A number of the sender's.
    pub extra: u64,
}

impl Record {
    /// As it goes through the pipe: between processes of one machine, in its byte order.
    pub fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[0..8].copy_from_slice(&self.ticket.offset.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.ticket.length.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.ticket.generation.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.kind.to_ne_bytes());
        bytes[24..32].copy_from_slice(&self.extra.to_ne_bytes());
        bytes
    }

    /// The way back.
    pub fn from_bytes(bytes: &[u8; RECORD]) -> Record {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        let both = word(16);
        let (generation, kind) = if cfg!(target_endian = "little") {
            (both as u32, (both >> 32) as u32)
        } else {
            ((both >> 32) as u32, both as u32)
        };
        Record { ticket: Ticket { offset: word(0), generation, length: word(8) }, kind, extra: word(24) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_pipe() {
        let ticket = Ticket { offset: 1 << 40, generation: 0xdead_beef, length: 77 };
        let record = Record { ticket, kind: 5, extra: u64::MAX - 1 };
        assert_eq!(Record::from_bytes(&record.to_bytes()), record);
    }
}
