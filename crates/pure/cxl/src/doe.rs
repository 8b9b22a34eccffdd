//! Data Object Exchange: the mailbox in configuration space by which a host reads a device's tables, a double word at a time.
//!
//! 1. The host writes a request into the write mailbox, double word by double word, and says that it is complete.
//! 2. The device answers, or notes an error.
//! 3. The host reads the read mailbox, and by a write to it takes each double word out, until it is empty.
//!
//! Source: [X] PCIe 6.0 §6.30 (DOE), CXL 3.1 §8.1.11 (table access); [P] sheet micro-expand §3.7 step 2.

use crate::cdat::{DSLBIS_BYTES, Dslbis, Dsmas};
use std::collections::VecDeque;

/// Vendor of the objects of CXL. [X]
const CXL_VENDOR: u32 = 0x1e98;
/// Type of the object that reads tables. [X]
const TABLE_ACCESS: u32 = 2;
/// The entry behind the last one. [X]
const NO_ENTRY: u16 = u16::MAX;
/// Double words of a request: two of a header, and one. [X]
const REQUEST_WORDS: u32 = 3;

/// A request for an entry of the table, as the host writes it.
const fn request(handle: u16) -> [u32; 3] {
    // Code 0 reads an entry, and table 0 is the CDAT.
    [CXL_VENDOR | TABLE_ACCESS << 16, REQUEST_WORDS, (handle as u32) << 16]
}

/// The mailbox of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    entries: Vec<[u8; DSLBIS_BYTES]>,
    written: Vec<u32>,
    read: VecDeque<u32>,
    has_error: bool,
}

impl Mailbox {
    /// The mailbox of a device with one range of memory and its latency.
    pub fn new(range: Dsmas, latency: Dslbis) -> Self {
        let entries = vec![range.encode(), latency.encode()];
        Self { entries, written: Vec::new(), read: VecDeque::new(), has_error: false }
    }

    /// Writes a double word of a request.
    pub fn write(&mut self, word: u32) {
        self.written.push(word);
    }

    /// Says that the request is complete: the device answers it, or notes an error.
    pub fn go(&mut self) {
        self.read.clear();
        let answer = self.answer();
        self.written.clear();
        self.has_error = answer.is_none();
        self.read.extend(answer.into_iter().flatten());
    }

    fn answer(&self) -> Option<Vec<u32>> {
        let &[header, words, wanted] = self.written.as_slice() else { return None };
        if header != request(0)[0] || words != REQUEST_WORDS || wanted & 0xffff != 0 {
            return None;
        }
        let handle = (wanted >> 16) as u16;
        let entry = self.entries.get(usize::from(handle))?;
        let next = if usize::from(handle) + 1 < self.entries.len() { handle + 1 } else { NO_ENTRY };
        let words = entry.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let length = REQUEST_WORDS + (DSLBIS_BYTES / 4) as u32;
        Some([header, length, u32::from(next) << 16].into_iter().chain(words).collect())
    }

    /// Whether the last request was none that the device knows.
    pub fn has_error(&self) -> bool {
        self.has_error
    }

    /// Takes a double word out of the read mailbox; `None` where it is empty.
    pub fn read(&mut self) -> Option<u32> {
        self.read.pop_front()
    }

    /// Reads all entries as a host does that knows none of them; `None` where an answer is not complete.
    pub fn tables(&mut self) -> Option<Vec<[u8; DSLBIS_BYTES]>> {
        let (mut tables, mut handle) = (Vec::new(), 0);
        while handle != NO_ENTRY {
            request(handle).into_iter().for_each(|word| self.write(word));
            self.go();
            let (_, _, next) = (self.read()?, self.read()?, self.read()?);
            let mut bytes = [0; DSLBIS_BYTES];
            for word in bytes.as_chunks_mut::<4>().0 {
                *word = self.read()?.to_le_bytes();
            }
            tables.push(bytes);
            handle = (next >> 16) as u16;
        }
        Some(tables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::{Bytes, SimSpan};
    use proptest::prelude::*;

    fn mailbox() -> Mailbox {
        let range = Dsmas { handle: 0, base: 0, size: Bytes::from_gib(64) };
        Mailbox::new(range, Dslbis::read_latency(SimSpan::from_ns(120)))
    }

    #[test]
    fn a_host_reads_the_tables_word_by_word() {
        let mut mailbox = mailbox();
        let tables = mailbox.tables().expect("they are complete");
        assert_eq!(tables.len(), 2);
        assert_eq!(Dsmas::decode(&tables[0]).map(|range| range.size), Some(Bytes::from_gib(64)));
        assert_eq!(Dslbis::decode(&tables[1]).map(|latency| latency.span()), Some(SimSpan::from_ns(120)));
        assert_eq!(mailbox.read(), None, "the mailbox is empty again");
    }

    proptest! {
        #[test]
        fn what_is_no_request_is_noted_as_an_error_and_harms_nothing(words in prop::collection::vec(any::<u32>(), 0..6)) {
            let mut mailbox = mailbox();
            words.iter().for_each(|word| mailbox.write(*word));
            mailbox.go();
            prop_assert!(mailbox.has_error() && mailbox.read().is_none());
            prop_assert_eq!(mailbox.tables().map(|tables| tables.len()), Some(2));
        }
    }
}
