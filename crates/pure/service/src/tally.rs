//! Requests that end with the last of their orders.

use crate::failure::Failure;

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    orders: u32,
    failure: Option<Failure>,
}

/// Orders under way of each request, by its number.
#[derive(Clone, Debug, Default)]
pub struct Tally(Vec<Option<Asked>>);

impl Tally {
    /// A request begins with no order.
    pub fn begin(&mut self, request: u32) {
        let place = request as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, None);
        }
        debug_assert!(self.0[place].is_none(), "request {request} is under way");
        self.0[place] = Some(Asked { orders: 0, failure: None });
    }

    /// One more order of a request is sent.
    #[inline]
    pub fn expect(&mut self, request: u32) {
        if let Some(asked) = &mut self.0[request as usize] {
            asked.orders += 1;
        }
    }

    /// A request has ended without an order.
    pub fn forget(&mut self, request: u32) {
        self.0[request as usize] = None;
    }

    /// An order of a request has ended. Returns the answer with the last one: the first failure, if there was one.
    #[inline]
    pub fn end(&mut self, request: u32, result: Result<(), Failure>) -> Option<Result<(), Failure>> {
        let asked = self.0.get_mut(request as usize)?.as_mut()?;
        asked.orders -= 1;
        if let Err(failure) = result {
            asked.failure.get_or_insert(failure);
        }
        if asked.orders > 0 {
            return None;
        }
        let answer = asked.failure.map_or(Ok(()), Err);
        self.0[request as usize] = None;
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_once_with_its_first_failure() {
        let mut tally = Tally::default();
        tally.begin(3);
        (0..3).for_each(|_| tally.expect(3));
        assert_eq!(tally.end(3, Ok(())), None);
        assert_eq!(tally.end(3, Err(Failure::NoRoom)), None);
        assert_eq!(tally.end(3, Err(Failure::Gone)), Some(Err(Failure::NoRoom)));
        assert_eq!(tally.end(3, Ok(())), None, "it has ended");
        tally.begin(3);
        tally.forget(3);
        assert_eq!((tally.end(3, Ok(())), tally.end(99, Ok(()))), (None, None));
    }
}
