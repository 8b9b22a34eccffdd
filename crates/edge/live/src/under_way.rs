//! Commands under way of a front end: for which connection, and what they take of the budget.

use flashyard_kernel::Slab;

/// One command.
#[derive(Debug)]
pub(crate) struct Command<W> {
    /// The place of its connection; `None` once that is closed.
    pub(crate) place: Option<usize>,
    /// Whether it counts among those whose connections are closed.
    is_abandoned: bool,
    /// Bytes that it takes of the budget.
    pub(crate) cost: usize,
    /// State of its protocol.
    pub(crate) work: W,
}

/// Commands under way, by number.
///
/// A command whose connection is closed is abandoned: it keeps its number until the world has given it back, so that its
/// answer is not taken for that of another one.
#[derive(Debug)]
pub(crate) struct UnderWay<W> {
    commands: Slab<Command<W>>,
    abandoned: usize,
    /// Those that go on with another step, such as a flush behind a write: the world has nothing of them.
    to_go_on: Vec<usize>,
    ended_cost: usize,
}

impl<W> Default for UnderWay<W> {
    fn default() -> Self {
        Self { commands: Slab::default(), abandoned: 0, to_go_on: Vec::new(), ended_cost: 0 }
    }
}

impl<W> UnderWay<W> {
    /// Begins a command of the connection at `place`, for which `cost` bytes were taken of the budget; returns its number.
    pub(crate) fn begin(&mut self, place: usize, cost: usize, work: W) -> usize {
        self.commands.insert(Command { place: Some(place), is_abandoned: false, cost, work })
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Command<W>> {
        self.commands.get(number)
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Command<W>> {
        self.commands.get_mut(number)
    }

    /// The commands with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Command<W>)> {
        self.commands.iter()
    }

    /// Whether something is under way for a connection that is closed, and is waited for.
    pub(crate) fn any_abandoned(&self) -> bool {
        self.abandoned > 0
    }

    /// Bytes of the budget that commands now over took, since the last call.
    pub(crate) fn take_ended_cost(&mut self) -> usize {
        std::mem::take(&mut self.ended_cost)
    }

    /// A step of the command is done, and another one follows in the next turn.
    pub(crate) fn go_on_next(&mut self, number: usize) {
        self.to_go_on.push(number);
    }

    /// Commands that go on now.
    pub(crate) fn take_to_go_on(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.to_go_on)
    }

    /// The command is over.
    pub(crate) fn end(&mut self, number: usize) -> Option<Command<W>> {
        let command = self.commands.remove(number)?;
        self.ended_cost += command.cost;
        self.abandoned -= usize::from(command.is_abandoned);
        Some(command)
    }

    /// The connection of the command is closed, and nothing has to wait for its end.
    pub(crate) fn let_be(&mut self, number: usize) {
        let command = self.commands.get_mut(number);
        let was_abandoned = command.is_some_and(|command| std::mem::take(&mut command.is_abandoned));
        self.abandoned -= usize::from(was_abandoned);
    }

    /// The connection at `place` is closed. Returns its commands that may be in the world, to be given up;
    /// those between two steps are over.
    pub(crate) fn abandon(&mut self, place: usize) -> Vec<usize> {
        let mut abandoned = Vec::new();
        for (number, command) in self.commands.iter_mut().filter(|(_, command)| command.place == Some(place)) {
            (command.place, command.is_abandoned) = (None, true);
            abandoned.push(number);
        }
        self.abandoned += abandoned.len();
        abandoned.retain(|&number| match self.to_go_on.iter().position(|&other| other == number) {
            Some(at) => {
                self.to_go_on.remove(at);
                self.end(number);
                false
            }
            None => true,
        });
        abandoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_closed_connection_leaves_is_counted_until_the_world_has_given_it_back() {
        let mut under_way = UnderWay::default();
        let numbers: Vec<usize> =
            [(7, 'a'), (8, 'b'), (7, 'c'), (7, 'd')].map(|(place, work)| under_way.begin(place, 100, work)).to_vec();
        assert_eq!(under_way.end(numbers[0]).map(|ended| (ended.place, ended.work)), Some((Some(7), 'a')));
        under_way.go_on_next(numbers[2]);
        assert_eq!((under_way.abandon(7), under_way.any_abandoned()), (vec![numbers[3]], true));
        assert!(under_way.get(numbers[2]).is_none() && under_way.take_to_go_on().is_empty(), "it was not at the world");
        assert_eq!(under_way.take_ended_cost(), 200);
        assert_eq!(under_way.end(numbers[3]).map(|ended| ended.place), Some(None));
        assert!(!under_way.any_abandoned() && under_way.iter().count() == 1);
        assert_eq!((under_way.take_ended_cost(), under_way.take_ended_cost()), (100, 0));
        assert_eq!(under_way.abandon(7), Vec::<usize>::new(), "it has nothing any more");
        assert_eq!((under_way.abandon(8), under_way.any_abandoned()), (vec![numbers[1]], true));
        under_way.let_be(numbers[1]);
        under_way.let_be(numbers[1]);
        assert!(!under_way.any_abandoned(), "no other one waits for it");
        assert_eq!(under_way.end(numbers[1]).map(|ended| ended.work), Some('b'));
        assert!(!under_way.any_abandoned());
    }
}
