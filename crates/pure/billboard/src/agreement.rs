//! Both ends of agreements. A lease begins for its consumer when it asks and for its producer when it hears that, which is later: so the consumer
//! stops first.

use flashyard_units::{SimSpan, SimTime};
use std::collections::BTreeMap;

/// Number of an agreement: the consumer and the consumer's count, which it never uses again. A consumer that has forgotten its count begins with another
/// incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Agreement {
    /// The consumer.
    pub consumer: u16,
    /// How often it has begun from nothing.
    pub incarnation: u32,
    /// Its count.
    pub number: u32,
}

/// Messages between a consumer and a producer. Each may be lost, doubled or late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The consumer asks for space, or for a lease to go on.
    Ask {
        /// Which.
        agreement: Agreement,
        /// Units of space.
        space: u32,
        /// The consumer's time, which the answer returns.
        asked: SimTime,
    },
    /// The producer has promised it for a lease from now on.
    Confirm {
        /// Which.
        agreement: Agreement,
        /// As in the question.
        asked: SimTime,
        /// The producer's time at which the promise began. One that begins again, for its lease had ended, has nothing of what lay there.
        begun: SimTime,
    },
    /// The producer has no room, or leaves.
    Refuse {
        /// Which.
        agreement: Agreement,
    },
    /// The consumer needs it no more.
    Release {
        /// Which.
        agreement: Agreement,
    },
    /// The producer leaves: the consumer is to move what it has there, and to release it.
    Leaving {
        /// Which.
        agreement: Agreement,
    },
}

/// A promise of a producer.
#[derive(Clone, Copy, Debug)]
struct Promise {
    space: u32,
    begun: SimTime,
    until: SimTime,
}

/// A server that lends space.
#[derive(Clone, Debug)]
pub struct Producer {
    space: u32,
    lease: SimSpan,
    promises: BTreeMap<Agreement, Promise>,
    /// Agreements that were released, and until when a late question for them may come.
    released: BTreeMap<Agreement, SimTime>,
    /// Promises begin then: promises of a time that is forgotten may go on until then.
    from: SimTime,
    leaves: bool,
}

impl Producer {
    /// One that has forgotten everything, with so much space: it promises nothing for a lease.
    pub fn begin(now: SimTime, space: u32, lease: SimSpan) -> Self {
        Self { space, lease, promises: BTreeMap::new(), released: BTreeMap::new(), from: now + lease, leaves: false }
    }

    /// One that never promised anything.
    pub fn new(space: u32, lease: SimSpan) -> Self {
        Self { from: SimTime::ZERO, ..Self::begin(SimTime::ZERO, space, lease) }
    }

    /// Space that is not promised.
    pub fn free(&mut self, now: SimTime) -> u32 {
        self.forget(now);
        if now < self.from || self.leaves { 0 } else { self.space - self.promised() }
    }

    fn promised(&self) -> u32 {
        self.promises.values().map(|promise| promise.space).sum()
    }

    fn forget(&mut self, now: SimTime) {
        self.promises.retain(|_, promise| promise.until > now);
        self.released.retain(|_, until| *until > now);
    }

    /// Whether it has promised space to an agreement.
    pub fn has(&self, now: SimTime, agreement: Agreement) -> bool {
        self.promises.get(&agreement).is_some_and(|promise| promise.until > now)
    }

    /// Whether it has promised a consumer something, or remembers a release of one.
    pub fn knows(&self, now: SimTime, consumer: u16) -> bool {
        let first = Agreement { consumer, incarnation: 0, number: 0 };
        let of_it = first..=Agreement { incarnation: u32::MAX, number: u32::MAX, ..first };
        self.promises.range(of_it.clone()).any(|(_, promise)| promise.until > now)
            || self.released.range(of_it).any(|(_, &until)| until > now)
    }

    /// Takes a message, and returns the answer.
    pub fn receive(&mut self, now: SimTime, message: Message) -> Option<Message> {
        self.forget(now);
        match message {
            Message::Ask { agreement, space, asked } => {
                let known = self.promises.get(&agreement).map(|promise| promise.space);
                let fits = now >= self.from && !self.leaves && space <= self.space - self.promised();
                // A question that was late behind the release of its agreement makes no new one.
                if known.is_none_or(|known| known != space) && (!fits || self.released.contains_key(&agreement)) {
                    return Some(Message::Refuse { agreement });
                }
                let begun = self.promises.get(&agreement).map_or(now, |promise| promise.begun);
                self.promises.insert(agreement, Promise { space, begun, until: now + self.lease });
                Some(Message::Confirm { agreement, asked, begun })
            }
            Message::Release { agreement } => {
                self.promises.remove(&agreement);
                self.released.insert(agreement, now + self.lease * 2);
                None
            }
            Message::Confirm { .. } | Message::Refuse { .. } | Message::Leaving { .. } => None,
        }
    }

    /// Promises nothing new, and returns what its consumers are to be told, again and again until they have released all.
    pub fn leave(&mut self, now: SimTime) -> Vec<Message> {
        self.leaves = true;
        self.forget(now);
        self.promises.keys().map(|&agreement| Message::Leaving { agreement }).collect()
    }
}

/// Space of a producer that a consumer has.
#[derive(Clone, Copy, Debug)]
struct Held {
    producer: u16,
    space: u32,
    lease: SimSpan,
    /// It may be used until then; not at all before it was confirmed.
    until: SimTime,
    asked: SimTime,
    /// When the promise began by the producer's time, once it was confirmed.
    begun: Option<SimTime>,
    is_left: bool,
    /// The producer knows it no more: a question would make another promise.
    is_over: bool,
}

/// A server that uses space of others.
#[derive(Clone, Debug)]
pub struct Consumer {
    server: u16,
    incarnation: u32,
    count: u32,
    lease: SimSpan,
    held: BTreeMap<Agreement, Held>,
}

impl Consumer {
    /// One that has forgotten everything for the time `incarnation`.
    pub fn new(server: u16, incarnation: u32, lease: SimSpan) -> Self {
        Self { server, incarnation, count: 0, lease, held: BTreeMap::new() }
    }

    /// Asks a producer for space.
    pub fn ask(&mut self, now: SimTime, producer: u16, space: u32) -> (Agreement, Message) {
        self.ask_for(now, producer, space, self.lease)
    }

    /// Asks a producer for space, whose lease may have a length of its own.
    pub fn ask_for(&mut self, now: SimTime, producer: u16, space: u32, lease: SimSpan) -> (Agreement, Message) {
        self.count += 1;
        let agreement = Agreement { consumer: self.server, incarnation: self.incarnation, number: self.count };
        let held = Held {
            producer,
            space,
            lease,
            until: SimTime::ZERO,
            asked: now,
            begun: None,
            is_left: false,
            is_over: false,
        };
        self.held.insert(agreement, held);
        (agreement, Message::Ask { agreement, space, asked: now })
    }

    /// Takes an answer. One to a question that was not asked yet is no answer: a lease goes no further than its producer's.
    pub fn receive(&mut self, message: Message) {
        match message {
            Message::Confirm { agreement, asked, begun } => {
                let Some(held) = self.held.get_mut(&agreement).filter(|held| asked <= held.asked) else { return };
                match *held.begun.get_or_insert(begun) {
                    known if known == begun => held.until = held.until.max(asked + held.lease),
                    // A late question has made another promise: what lay there is gone.
                    known if known < begun => {
                        (held.until, held.is_left, held.is_over) = (SimTime::ZERO, true, true);
                    }
                    _ => {}
                }
            }
            // A lease that was confirmed before goes on to its end.
            Message::Refuse { agreement } => {
                if let Some(held) = self.held.get_mut(&agreement) {
                    (held.is_left, held.is_over) = (true, true);
                }
            }
            // It goes on until what lies there has been moved.
            Message::Leaving { agreement } => {
                if let Some(held) = self.held.get_mut(&agreement) {
                    held.is_left = true;
                }
            }
            Message::Ask { .. } | Message::Release { .. } => {}
        }
    }

    /// Whether an agreement may be used.
    pub fn may_use(&self, now: SimTime, agreement: Agreement) -> bool {
        self.held.get(&agreement).is_some_and(|held| now < held.until)
    }

    /// Whether it has asked for an agreement, and has neither ended nor forgotten it.
    pub fn knows(&self, agreement: Agreement) -> bool {
        self.held.contains_key(&agreement)
    }

    /// Whether its producer has refused, or leaves.
    pub fn is_left(&self, agreement: Agreement) -> bool {
        self.held.get(&agreement).is_some_and(|held| held.is_left)
    }

    /// Space that may be used, by producer.
    pub fn uses(&self, now: SimTime) -> impl Iterator<Item = (u16, u32)> {
        self.held.values().filter(move |held| now < held.until).map(|held| (held.producer, held.space))
    }

    /// Questions that keep leases going: those that end within half a lease.
    pub fn renew(&mut self, now: SimTime) -> Vec<(u16, Message)> {
        let agreements: Vec<Agreement> = self.held.keys().copied().collect();
        agreements.into_iter().filter_map(|agreement| self.renew_one(now, agreement)).collect()
    }

    /// The question that keeps one lease going, if that ends within half of it.
    pub fn renew_one(&mut self, now: SimTime, agreement: Agreement) -> Option<(u16, Message)> {
        let held = self.held.get_mut(&agreement)?;
        if held.is_over || held.until > now + held.lease / 2 {
            return None;
        }
        held.asked = now;
        Some((held.producer, Message::Ask { agreement, space: held.space, asked: now }))
    }

    /// Ends an agreement: it is not used from now on. The message may be sent more than once.
    pub fn release(&mut self, agreement: Agreement) -> Option<(u16, Message)> {
        let held = self.held.remove(&agreement)?;
        Some((held.producer, Message::Release { agreement }))
    }

    /// Agreements that can be used no more, and are forgotten.
    pub fn lapse(&mut self, now: SimTime) -> Vec<Agreement> {
        let gone = |held: &Held| now >= held.until.max(held.asked + held.lease);
        let lapsed: Vec<Agreement> = self.held.iter().filter(|(_, held)| gone(held)).map(|(&id, _)| id).collect();
        self.held.retain(|_, held| !gone(held));
        lapsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;

    const LEASE: SimSpan = SimSpan::from_secs(60);
    const SERVERS: u16 = 5;

    struct World {
        now: SimTime,
        rng: Rng,
        producers: Vec<Producer>,
        consumers: Vec<Consumer>,
        incarnations: Vec<u32>,
        live: Vec<Agreement>,
        /// Messages on their way: when they come, to which producer or consumer.
        posts: Vec<(SimTime, u16, bool, Message)>,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let consumer = |server| Consumer::new(server, 0, LEASE);
            Self {
                now: SimTime::ZERO,
                rng: Rng::named(seed, "billboard"),
                producers: (0..SERVERS).map(|_| Producer::new(100, LEASE)).collect(),
                consumers: (0..SERVERS).map(consumer).collect(),
                incarnations: vec![0; usize::from(SERVERS)],
                live: Vec::new(),
                posts: Vec::new(),
            }
        }

        /// A message is lost, late, or doubled.
        fn post(&mut self, to: u16, to_producer: bool, message: Message) {
            for _ in 0..[1, 1, 1, 2, 0][self.rng.below(5) as usize] {
                let most = if self.rng.below(10) == 0 { 150_000 } else { 3000 };
                let late = SimSpan::from_ms(self.rng.below(most));
                self.posts.push((self.now + late, to, to_producer, message));
            }
        }

        fn deliver(&mut self) {
            while let Some(place) = self.posts.iter().position(|post| post.0 <= self.now) {
                let (_, to, to_producer, message) = self.posts.swap_remove(place);
                if to_producer {
                    if let Some(answer) = self.producers[usize::from(to)].receive(self.now, message) {
                        let (Message::Confirm { agreement, .. } | Message::Refuse { agreement }) = answer else {
                            continue;
                        };
                        self.post(agreement.consumer, false, answer);
                    }
                } else {
                    self.consumers[usize::from(to)].receive(message);
                }
            }
        }

        fn step(&mut self) {
            self.now += SimSpan::from_ms(self.rng.below(4000));
            self.deliver();
            let server = self.rng.below(SERVERS.into()) as u16;
            let place = usize::from(server);
            match self.rng.below(40) {
                0 => self.producers[place] = Producer::begin(self.now, 100, LEASE),
                1 => {
                    self.incarnations[place] += 1;
                    self.consumers[place] = Consumer::new(server, self.incarnations[place], LEASE);
                }
                2 => {
                    for message in self.producers[place].leave(self.now) {
                        let Message::Leaving { agreement } = message else { continue };
                        self.post(agreement.consumer, false, message);
                    }
                }
                3..14 => {
                    let (producer, space) = (self.rng.below(SERVERS.into()) as u16, 1 + self.rng.below(60) as u32);
                    let (agreement, message) = self.consumers[place].ask(self.now, producer, space);
                    self.live.push(agreement);
                    self.post(producer, true, message);
                }
                14..20 if !self.live.is_empty() => {
                    let agreement = self.live.swap_remove(self.rng.below(self.live.len() as u64) as usize);
                    let consumer = &mut self.consumers[usize::from(agreement.consumer)];
                    if let Some((producer, message)) = consumer.release(agreement) {
                        self.post(producer, true, message);
                    }
                }
                _ => {
                    for (producer, message) in self.consumers[place].renew(self.now) {
                        self.post(producer, true, message);
                    }
                    self.consumers[place].lapse(self.now);
                }
            }
        }

        /// Space that consumers may use of each producer.
        fn used(&self) -> Vec<u32> {
            let mut used = vec![0; usize::from(SERVERS)];
            for (producer, space) in self.consumers.iter().flat_map(|consumer| consumer.uses(self.now)) {
                used[usize::from(producer)] += space;
            }
            used
        }
    }

    #[test]
    fn space_is_never_used_twice_and_comes_back_whatever_happens_to_messages_and_servers() {
        let (mut in_use, mut checked) = (0_u64, 0_u64);
        for seed in 0..400 {
            let mut world = World::new(seed);
            for step in 0..400 {
                world.step();
                let used = world.used();
                assert!(used.iter().all(|&used| used <= 100), "seed {seed}, step {step}: {used:?} of 100 each");
                in_use += u64::from(used.iter().sum::<u32>());
                checked += 1;
            }
            // Nothing is asked for any more.
            world.now += LEASE * 4;
            world.posts.clear();
            world.consumers.iter_mut().for_each(|consumer| drop(consumer.lapse(world.now)));
            assert_eq!(world.used(), vec![0; usize::from(SERVERS)], "seed {seed}");
            let now = world.now;
            for producer in world.producers.iter_mut().filter(|producer| !producer.leaves) {
                assert_eq!(producer.free(now), 100, "seed {seed}");
            }
        }
        assert!(in_use / checked > 30, "the rack is used: {}", in_use / checked);
    }

    #[test]
    fn an_agreement_ends_in_order_when_its_producer_leaves() {
        let mut producer = Producer::new(100, LEASE);
        let mut consumer = Consumer::new(1, 0, LEASE);
        let at = |s: u64| SimTime::ZERO + SimSpan::from_secs(s);
        let (agreement, ask) = consumer.ask(at(0), 0, 70);
        consumer.receive(producer.receive(at(1), ask).expect("it answers"));
        assert!(consumer.may_use(at(2), agreement) && producer.free(at(2)) == 30);
        for message in producer.leave(at(10)) {
            consumer.receive(message);
        }
        assert!(consumer.is_left(agreement) && consumer.may_use(at(11), agreement), "there is time to move");
        let (_, ask) = consumer.renew_one(at(50), agreement).expect("it goes on until all has moved");
        consumer.receive(producer.receive(at(51), ask).expect("it answers"));
        assert!(consumer.is_left(agreement) && consumer.may_use(at(100), agreement));
        let (_, other) = Consumer::new(2, 0, LEASE).ask(at(52), 0, 1);
        assert!(matches!(producer.receive(at(52), other), Some(Message::Refuse { .. })), "nothing new is promised");
        let (to, message) = consumer.release(agreement).expect("it was there");
        assert_eq!((to, producer.receive(at(120), message)), (0, None));
        // A question that was late behind the release makes no new agreement.
        let late = Message::Ask { agreement, space: 70, asked: at(0) };
        assert_eq!(producer.receive(at(121), late), Some(Message::Refuse { agreement }));
    }

    #[test]
    fn an_answer_to_a_question_that_was_not_asked_makes_no_lease_longer() {
        let mut consumer = Consumer::new(1, 0, LEASE);
        let at = |s: u64| SimTime::ZERO + SimSpan::from_secs(s);
        let (agreement, _) = consumer.ask(at(10), 0, 70);
        let begun = at(3);
        for asked in [SimTime::MAX, at(10) + SimSpan::from_ns(1)] {
            consumer.receive(Message::Confirm { agreement, asked, begun });
            assert!(!consumer.may_use(at(11), agreement), "asked at {asked:?}");
        }
        consumer.receive(Message::Confirm { agreement, asked: at(10), begun });
        assert!(consumer.may_use(at(69), agreement) && !consumer.may_use(at(70), agreement));
        consumer.receive(Message::Confirm { agreement, asked: at(20), begun });
        assert!(!consumer.may_use(at(70), agreement));
        assert!(consumer.renew_one(at(50), agreement).is_some());
        consumer.receive(Message::Confirm { agreement, asked: at(50), begun });
        assert!(consumer.may_use(at(109), agreement) && !consumer.may_use(at(110), agreement));
    }

    #[test]
    fn a_lease_of_its_own_length_ends_by_it() {
        let mut producer = Producer::new(100, LEASE);
        let mut consumer = Consumer::new(1, 0, LEASE);
        let at = |s: u64| SimTime::ZERO + SimSpan::from_secs(s);
        let (agreement, ask) = consumer.ask_for(at(0), 0, 70, SimSpan::from_secs(10));
        consumer.receive(producer.receive(at(1), ask).expect("it answers"));
        assert_eq!(consumer.renew_one(at(4), agreement), None);
        assert!(consumer.renew_one(at(6), agreement).is_some(), "half of it has passed");
        assert!(consumer.may_use(at(9), agreement) && !consumer.may_use(at(10), agreement));
        assert_eq!(consumer.lapse(at(16)), [agreement], "an answer to the last question might have come until then");
    }

    #[test]
    fn a_producer_knows_a_consumer_until_a_late_question_of_it_can_come_no_more() {
        let mut producer = Producer::new(100, LEASE);
        let at = |s: u64| SimTime::ZERO + SimSpan::from_secs(s);
        let (agreement, ask) = Consumer::new(7, 3, LEASE).ask(at(0), 0, 70);
        producer.receive(at(1), ask);
        assert_eq!([6, 7, 8].map(|consumer| producer.knows(at(60), consumer)), [false, true, false]);
        assert!(!producer.knows(at(61), 7), "its lease has ended");
        producer.receive(at(61), Message::Release { agreement });
        assert!(producer.knows(at(180), 7) && !producer.knows(at(181), 7));
    }
}
