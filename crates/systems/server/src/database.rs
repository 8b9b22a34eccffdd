//! A database as its requests show it: a recorded sequence of groups, with the time that it thinks between them.
//!
//! What it models: one connection of a database that waits for each group of requests before it goes on, and takes as long for its own
//! work as when it was recorded. Faster storage therefore makes it faster, up to that work. Several connections are several such
//! clients that begin at different places of the recording.
//!
//! What it does not model: that connections share a pool of pages and a log, that they compete for processors, and flushes, which
//! drives with protected buffers answer at once.

use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_units::{SimSpan, SimTime};
use flashyard_workload::{RequestSource, SourceError};

/// Bytes of a block of recordings.
const BLOCK: u64 = 4096;
/// Columns of a recording: time of thinking so far, direction, address and size.
const HEADER: &str = "time_us,op,offset_4k,size_4k";

/// A request, and how long the database thinks before it; not at all where it comes with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time of thinking.
    pub thinks: SimSpan,
    /// The request.
    pub request: BlockRequest,
}

/// Reads a recording.
///
/// Errors: the first line that is wrong, by its number.
pub fn parse(text: &str) -> Result<Vec<Step>, SourceError> {
    let mut lines = text.lines().enumerate();
    let wrong = |number: usize, what: &str| SourceError(format!("line {}: {what}", number + 1));
    if lines.next().map(|line| line.1) != Some(HEADER) {
        return Err(wrong(0, &format!("a recording begins with {HEADER}")));
    }
    let mut steps = Vec::new();
    let mut before = 0;
    for (number, line) in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let &[time, direction, offset, size] = fields.as_slice() else {
            return Err(wrong(number, "four fields are needed"));
        };
        let count = |text: &str| text.parse::<u64>().map_err(|_| wrong(number, &format!("{text:?} is no number")));
        let operation = match direction {
            "r" => Operation::Read,
            "w" => Operation::Write,
            other => return Err(wrong(number, &format!("{other:?} is neither r nor w"))),
        };
        let (time, offset, size) = (count(time)?, count(offset)?, count(size)?);
        let thinks = time.checked_sub(before).ok_or_else(|| wrong(number, "the time goes back"))?;
        before = time;
        let len_bytes = u32::try_from(size * BLOCK).ok().filter(|&bytes| bytes > 0);
        let len_bytes = len_bytes.ok_or_else(|| wrong(number, "a request has 1 to 1,048,575 blocks"))?;
        let request = BlockRequest { operation, offset_bytes: offset * BLOCK, len_bytes };
        steps.push(Step { thinks: SimSpan::from_us(thinks), request });
    }
    Ok(steps)
}

/// A recording again and again, from a place on, for [`Pacing::Thinking`](flashyard_measure::Pacing::Thinking).
#[derive(Clone, Debug)]
pub struct Connection {
    steps: Vec<Step>,
    next: usize,
    thought: SimTime,
}

impl Connection {
    /// Number `number` of `clients`, which begin at equal distances. `None` where the recording is empty.
    pub fn new(steps: Vec<Step>, number: usize, clients: usize) -> Option<Self> {
        let next = (steps.len() * number / clients.max(1)).checked_rem(steps.len())?;
        Some(Self { next, steps, thought: SimTime::ZERO })
    }
}

impl RequestSource for Connection {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        let step = self.steps[self.next];
        self.next = (self.next + 1) % self.steps.len();
        self.thought += step.thinks;
        Ok(Some(TraceRecord { arrival: self.thought, volume: 0, request: step.request }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_read_and_repeats_with_its_thinking() {
        let steps = parse("time_us,op,offset_4k,size_4k\n10,r,5,4\n10,w,7,1\n35,r,0,4\n").expect("it is one");
        let thinks: Vec<f64> = steps.iter().map(|step| step.thinks.as_us_f64()).collect();
        assert_eq!(thinks, [10.0, 0.0, 25.0]);
        let mut second = Connection::new(steps, 1, 3).expect("it has steps");
        let arrivals: Vec<f64> = (0..4)
            .map(|_| second.next_request().expect("it goes on").expect("it goes on").arrival)
            .map(|at| at.since(SimTime::ZERO).as_us_f64())
            .collect();
        assert_eq!(arrivals, [0.0, 25.0, 35.0, 35.0]);
        assert!(Connection::new(Vec::new(), 0, 1).is_none());
    }

    #[test]
    fn a_recording_with_a_fault_is_refused_with_its_line() {
        for (text, expected) in [
            ("", "line 1: a recording begins"),
            ("time_us,op,offset_4k,size_4k\n1,r,2", "line 2: four fields"),
            ("time_us,op,offset_4k,size_4k\n1,f,2,1", "line 2: \"f\" is neither"),
            ("time_us,op,offset_4k,size_4k\n5,r,2,1\n4,r,2,1", "line 3: the time goes back"),
            ("time_us,op,offset_4k,size_4k\n5,r,2,0", "line 2: a request has"),
            ("time_us,op,offset_4k,size_4k\n5,r,-2,1", "line 2: \"-2\" is no number"),
        ] {
            let error = parse(text).expect_err("it has a fault").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
