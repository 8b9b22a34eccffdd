//! Programs that were traced: accesses from a file.
//!
//! A trace has the addresses of the process that made it, all over a space of 64 bits. Pages of memory are given to them in the order in
//! which they are touched first, as a system does that gives memory on demand. \[A\]

use flashyard_describe::{AccessRecords, Files, ScenarioError};
use flashyard_memory::{Access, Accesses};
use std::collections::BTreeMap;

/// A trace by its name.
#[derive(Clone)]
pub struct Trace {
    files: &'static dyn Files,
    key: &'static str,
    name: String,
}

impl Trace {
    /// The trace called `name`, which `files` open; `key` is that of the scenario which names it.
    pub fn new(files: &'static dyn Files, key: &'static str, name: &str) -> Self {
        Self { files, key, name: name.to_owned() }
    }

    /// Its accesses from the first on, in pages of so many bytes; again and again where it `repeats`.
    ///
    /// Errors: what is wrong with the file, with its place.
    pub fn open(&self, page_bytes: u64, repeats: bool) -> Result<TraceSource, ScenarioError> {
        Ok(TraceSource {
            records: self.records()?,
            trace: self.clone(),
            repeats,
            given: 0,
            pages: TracePages { page_bytes, pages: BTreeMap::new(), last: (u64::MAX, 0) },
            error: None,
        })
    }

    fn records(&self) -> Result<AccessRecords, ScenarioError> {
        self.files.open_accesses(&self.name).map_err(|error| ScenarioError::value(self.key, error))
    }
}

/// The accesses of a trace.
pub struct TraceSource {
    trace: Trace,
    records: AccessRecords,
    repeats: bool,
    /// Accesses since the file was opened.
    given: u64,
    pages: TracePages,
    error: Option<ScenarioError>,
}

impl TraceSource {
    /// The mistake at which the trace ended, if it did.
    pub fn take_error(&mut self) -> Option<ScenarioError> {
        self.error.take()
    }

    /// The next access as it is in the file.
    fn next_record(&mut self) -> Result<Option<Access>, ScenarioError> {
        loop {
            match self.records.next() {
                Some(Ok(access)) => {
                    self.given += 1;
                    return Ok(Some(access));
                }
                Some(Err(error)) => return Err(ScenarioError::value(self.trace.key, error)),
                None if self.repeats && self.given > 0 => {
                    self.given = 0;
                    self.records = self.trace.records()?;
                }
                None => return Ok(None),
            }
        }
    }
}

impl Accesses for TraceSource {
    fn next_access(&mut self) -> Option<Access> {
        match self.next_record() {
            Ok(access) => access.map(|access| Access { address: self.pages.place(access.address), ..access }),
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }
}

/// Pages by their first touch.
struct TracePages {
    page_bytes: u64,
    pages: BTreeMap<u64, u64>,
    last: (u64, u64),
}

impl TracePages {
    #[inline]
    fn place(&mut self, address: u64) -> u64 {
        let page = address / self.page_bytes;
        if page != self.last.0 {
            let next = self.pages.len() as u64;
            self.last = (page, *self.pages.entry(page).or_insert(next));
        }
        self.last.1 * self.page_bytes + address % self.page_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_workload::Records;

    /// Three accesses, and a mistake behind them in the file called "bad".
    struct Three;

    impl Files for Three {
        fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
            Ok(None)
        }

        fn open_trace(&self, name: &str) -> Result<Records, String> {
            Err(format!("{name}: there is none"))
        }

        fn open_accesses(&self, name: &str) -> Result<AccessRecords, String> {
            let of = |address| Ok(Access { address, ..Access::default() });
            let good = [of(0x7fff_0000_1008), of(0x1000), of(0x7fff_0000_1ff8)];
            let bad = (name == "bad").then(|| Err("bad:4: no access".to_owned()));
            Ok(Box::new(good.into_iter().chain(bad)))
        }
    }

    fn addresses(name: &str, repeats: bool) -> (Vec<u64>, Option<String>) {
        let mut source = Trace::new(&Three, "memory.trace", name).open(4096, repeats).expect("it opens");
        let found = (0..5).map_while(|_| source.next_access()).map(|access| access.address).collect();
        (found, source.take_error().map(|error| error.to_string()))
    }

    #[test]
    fn pages_are_given_in_the_order_of_first_touch() {
        assert_eq!(addresses("good", false), (vec![8, 4096, 0xff8], None));
        assert_eq!(addresses("good", true), (vec![8, 4096, 0xff8, 8, 4096], None));
    }

    #[test]
    fn a_mistake_ends_the_trace_and_is_told() {
        let (found, error) = addresses("bad", true);
        assert_eq!(found.len(), 3);
        assert_eq!(error.as_deref(), Some("memory.trace: bad:4: no access"));
        assert!(Trace::new(&flashyard_describe::NoFiles, "memory.trace", "x").open(4096, false).is_err());
    }
}
