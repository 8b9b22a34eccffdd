//! Steps of a write: messages, work of media, combinations, and which waits for which.

use super::config::ParityPath;

/// A step. Drives go by their roles in the stripe: data from 0 on, then parities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The host sends a drive its new data.
    Deliver {
        /// The drive.
        role: u8,
    },
    /// The host sends a drive the parity that it made.
    DeliverParity {
        /// The drive.
        role: u8,
    },
    /// The host tells a drive that it will be asked for old content.
    Command {
        /// The drive.
        role: u8,
    },
    /// A drive sends the host what it read.
    Fetch {
        /// The drive.
        role: u8,
    },
    /// A drive sends another one its sum for a parity.
    Pass {
        /// The sender.
        from: u8,
        /// The receiver.
        to: u8,
        /// The parity, counted from 0.
        parity: u8,
    },
    /// A drive reads old content from its media.
    Read {
        /// The drive.
        role: u8,
    },
    /// A drive writes new content to its media.
    Write {
        /// The drive.
        role: u8,
    },
    /// A drive tells the host that it wrote.
    Complete {
        /// The drive.
        role: u8,
    },
    /// A drive takes one input into its sums.
    Combine {
        /// The drive.
        role: u8,
    },
    /// The host makes all parities of so many inputs each.
    CombineInHost {
        /// Inputs times parities.
        inputs: u8,
    },
}

/// Which write it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole stripe.
    Full,
    /// A part of the chunk of this role.
    Partial(u8),
}

/// Steps of one kind of write, and their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<Action>,
    /// Of each step: how many must be over before it.
    waits: Vec<u8>,
    /// Of each step: those that wait for it.
    followers: Vec<Vec<u16>>,
}

impl Plan {
    /// The plan of a write over `data` chunks and `parities`.
    pub fn new(path: ParityPath, kind: Kind, data: usize, parities: usize) -> Self {
        let (data, parities) = (data as u8, parities as u8);
        let mut plan = Self::default();
        match (path, kind) {
            (ParityPath::Host, Kind::Full) => plan.host_full(data, parities),
            (ParityPath::Host, Kind::Partial(role)) => plan.host_partial(role, data, parities),
            (path, Kind::Full) => plan.peers_full(path, data, parities),
            (_, Kind::Partial(role)) => plan.peers_partial(role, data, parities),
        }
        plan
    }

    /// The steps.
    pub fn steps(&self) -> &[Action] {
        &self.steps
    }

    /// Of each step, how many must be over before it.
    pub fn waits(&self) -> &[u8] {
        &self.waits
    }

    /// The steps that wait for a step. Panics beyond the plan.
    pub fn followers(&self, step: u16) -> &[u16] {
        &self.followers[usize::from(step)]
    }

    /// Adds a step after others.
    fn add(&mut self, action: Action, after: &[u16]) -> u16 {
        let number = self.steps.len() as u16;
        self.steps.push(action);
        self.waits.push(after.len() as u8);
        self.followers.push(Vec::new());
        for &before in after {
            self.followers[usize::from(before)].push(number);
        }
        number
    }

    /// A drive writes after others, and says so.
    fn write(&mut self, role: u8, after: &[u16]) {
        let written = self.add(Action::Write { role }, after);
        self.add(Action::Complete { role }, &[written]);
    }

    fn host_full(&mut self, data: u8, parities: u8) {
        for role in 0..data {
            let delivered = self.add(Action::Deliver { role }, &[]);
            self.write(role, &[delivered]);
        }
        let combined = self.add(Action::CombineInHost { inputs: data * parities }, &[]);
        for role in data..data + parities {
            let delivered = self.add(Action::DeliverParity { role }, &[combined]);
            self.write(role, &[delivered]);
        }
    }

    /// Read, modify, write: old data and old parity come to the host.
    fn host_partial(&mut self, role: u8, data: u8, parities: u8) {
        let fetch = |plan: &mut Self, role| {
            let told = plan.add(Action::Command { role }, &[]);
            let read = plan.add(Action::Read { role }, &[told]);
            plan.add(Action::Fetch { role }, &[read])
        };
        let old = fetch(self, role);
        let mut fetched = vec![old];
        for parity in data..data + parities {
            fetched.push(fetch(self, parity));
        }
        let delivered = self.add(Action::Deliver { role }, &[old]);
        self.write(role, &[delivered]);
        let combined = self.add(Action::CombineInHost { inputs: 2 * parities }, &fetched);
        for role in data..data + parities {
            let delivered = self.add(Action::DeliverParity { role }, &[combined]);
            self.write(role, &[delivered]);
        }
    }

    fn peers_full(&mut self, path: ParityPath, data: u8, parities: u8) {
        let mut delivered = Vec::new();
        for role in 0..data {
            let here = self.add(Action::Deliver { role }, &[]);
            self.write(role, &[here]);
            delivered.push(here);
        }
        for parity in 0..parities {
            let keeper = data + parity;
            let told = self.add(Action::Command { role: keeper }, &[]);
            let mut inputs = vec![told];
            match path {
                ParityPath::Chain => inputs.push(self.chain(&delivered, parity, keeper)),
                ParityPath::Tree => inputs.push(self.tree(&delivered, parity, keeper)),
                ParityPath::Star | ParityPath::Host => {
                    for (from, &here) in (0..data).zip(&delivered) {
                        let passed = self.add(Action::Pass { from, to: keeper, parity }, &[here]);
                        inputs.push(self.add(Action::Combine { role: keeper }, &[passed]));
                    }
                }
            }
            self.write(keeper, &inputs);
        }
    }

    /// The sum goes from drive to drive; returns its last message.
    fn chain(&mut self, delivered: &[u16], parity: u8, keeper: u8) -> u16 {
        let last = delivered.len() as u8 - 1;
        let mut sum = delivered[0];
        for from in 0..last {
            let passed = self.add(Action::Pass { from, to: from + 1, parity }, &[sum]);
            sum = self.add(Action::Combine { role: from + 1 }, &[passed, delivered[usize::from(from) + 1]]);
        }
        self.add(Action::Pass { from: last, to: keeper, parity }, &[sum])
    }

    /// Sums are added up in pairs; returns the message with the last one.
    fn tree(&mut self, delivered: &[u16], parity: u8, keeper: u8) -> u16 {
        let mut sums = delivered.to_vec();
        let mut stride = 1;
        while stride < sums.len() {
            for to in (0..sums.len() - stride).step_by(2 * stride) {
                let from = to + stride;
                let pass = Action::Pass { from: from as u8, to: to as u8, parity };
                let passed = self.add(pass, &[sums[from]]);
                sums[to] = self.add(Action::Combine { role: to as u8 }, &[passed, sums[to]]);
            }
            stride *= 2;
        }
        self.add(Action::Pass { from: 0, to: keeper, parity }, &[sums[0]])
    }

    /// The drive with the chunk makes the difference and sends it to the drives with parity.
    fn peers_partial(&mut self, role: u8, data: u8, parities: u8) {
        let delivered = self.add(Action::Deliver { role }, &[]);
        let read = self.add(Action::Read { role }, &[delivered]);
        let changed = self.add(Action::Combine { role }, &[read]);
        self.write(role, &[read]);
        for parity in 0..parities {
            let keeper = data + parity;
            let told = self.add(Action::Command { role: keeper }, &[]);
            let old = self.add(Action::Read { role: keeper }, &[told]);
            let passed = self.add(Action::Pass { from: role, to: keeper, parity }, &[changed]);
            let combined = self.add(Action::Combine { role: keeper }, &[passed, old]);
            self.write(keeper, &[combined]);
        }
    }
}
