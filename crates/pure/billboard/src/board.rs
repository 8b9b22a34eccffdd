//! The billboard, and rules that choose whom to ask.

use flashyard_kernel::Rng;
use flashyard_units::SimTime;

/// Free resources of a server, as it posted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The server.
    pub server: u16,
    /// Free space, in units of one gigabyte or whatever the rack counts in.
    pub space: u32,
    /// Free requests a second, in thousands or whatever the rack counts in.
    pub rate: u32,
    /// Free bandwidth of its network, in gigabits a second or whatever the rack counts in.
    pub network: u32,
    /// When it was posted.
    pub at: SimTime,
}

/// The rule by which a consumer puts candidates in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By number.
    First,
    /// The most free space first.
    Most,
    /// The least space that suffices first, which keeps large pieces together.
    Best,
    /// The one with more space of two drawn at random, again and again: servers that read one board do not all ask one.
    TwoRandom,
}

impl Choice {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::First, Self::Most, Self::Best, Self::TwoRandom];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Most => "most free",
            Self::Best => "best fit",
            Self::TwoRandom => "two at random",
        }
    }
}

/// The last offer of each server.
#[derive(Clone, Debug, Default)]
pub struct Board {
    offers: Vec<Option<Offer>>,
}

impl Board {
    /// Takes an offer in place of the server's last one, unless that is newer.
    pub fn post(&mut self, offer: Offer) {
        let place = usize::from(offer.server);
        if place >= self.offers.len() {
            self.offers.resize(place + 1, None);
        }
        if self.offers[place].is_none_or(|old| old.at <= offer.at) {
            self.offers[place] = Some(offer);
        }
    }

    /// Takes a server's offer away.
    pub fn withdraw(&mut self, server: u16) {
        if let Some(place) = self.offers.get_mut(usize::from(server)) {
            *place = None;
        }
    }

    /// Servers that seem to have so much, but for `asker`, in the order in which to ask them. Offers of before `oldest` do not count.
    pub fn candidates(
        &self,
        asker: u16,
        (space, rate, network): (u32, u32, u32),
        oldest: SimTime,
        choice: Choice,
        rng: &mut Rng,
    ) -> Vec<u16> {
        let suffices = |offer: &&Offer| {
            offer.server != asker
                && offer.at >= oldest
                && offer.space >= space
                && offer.rate >= rate
                && offer.network >= network
        };
        let mut found: Vec<Offer> = self.offers.iter().flatten().filter(suffices).copied().collect();
        match choice {
            Choice::First => {}
            Choice::Most => found.sort_by_key(|offer| (std::cmp::Reverse(offer.space), offer.server)),
            Choice::Best => found.sort_by_key(|offer| (offer.space, offer.server)),
            Choice::TwoRandom => {
                let mut order = Vec::with_capacity(found.len());
                while !found.is_empty() {
                    let [one, other] = [(); 2].map(|()| rng.below(found.len() as u64) as usize);
                    let better = if found[one].space >= found[other].space { one } else { other };
                    order.push(found.swap_remove(better));
                }
                found = order;
            }
        }
        found.into_iter().map(|offer| offer.server).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_units::SimSpan;

    #[test]
    fn candidates_suffice_and_come_in_the_order_of_the_rule() {
        let mut board = Board::default();
        let at = |s: u64| SimTime::ZERO + SimSpan::from_secs(s);
        for (server, space) in [(0, 50), (1, 10), (2, 30), (3, 5), (4, 40)] {
            board.post(Offer { server, space, rate: 10, network: 10, at: at(u64::from(server)) });
        }
        let mut rng = Rng::named(1, "test");
        let mut ask = |choice, oldest| board.candidates(0, (10, 1, 1), oldest, choice, &mut rng);
        assert_eq!(ask(Choice::First, at(0)), [1, 2, 4]);
        assert_eq!(ask(Choice::Most, at(0)), [4, 2, 1]);
        assert_eq!(ask(Choice::Best, at(0)), [1, 2, 4]);
        assert_eq!(ask(Choice::Most, at(2)), [4, 2], "older offers do not count");
        let mut drawn = ask(Choice::TwoRandom, at(0));
        drawn.sort_unstable();
        assert_eq!(drawn, [1, 2, 4]);
        board.post(Offer { server: 4, space: 90, rate: 10, network: 10, at: at(3) });
        board.withdraw(2);
        let mut rng = Rng::named(1, "test");
        assert_eq!(
            board.candidates(9, (41, 1, 1), at(0), Choice::First, &mut rng),
            [0],
            "an older offer comes too late"
        );
    }
}
