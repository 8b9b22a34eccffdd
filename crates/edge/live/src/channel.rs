//! A front end inside the program: clients on other threads, for tests, load and embedding.

use crate::clock::WallClock;
use crate::front::{Answered, Context, FrontEnd, Readiness};
use flashyard_blk::{Completion, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest, check};
use flashyard_kernel::Slab;
use flashyard_served::{Answer, Refused};
use flashyard_units::{SimSpan, SimTime, VolumeId};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

/// Requests taken from the queue in one turn, at most.
const TAKEN_MAX: usize = 256;

/// Tells a client's thread that completions have come.
pub type Wake = Box<dyn Fn() + Send>;

enum Message {
    Submit { client: usize, tag: u64, request: VolumeRequest, payload: Payload },
    GiveUp { client: usize, tag: u64 },
}

/// The front end of clients inside the program.
pub struct ChannelFront {
    waker: Arc<mio::Waker>,
    sender: Sender<Message>,
    queue: Receiver<Message>,
    clients: Vec<(Sender<Completion>, Option<Wake>)>,
    /// Client and tag of each request under way, by the front end's tag.
    under_way: Slab<(usize, u64)>,
    /// Answers of this turn: a woken client may take the processor, so none is before all are ready.
    outbox: Vec<(usize, Completion)>,
}

impl ChannelFront {
    /// A front end without clients; `waker` is that of its engine.
    pub fn new(waker: Arc<mio::Waker>) -> Self {
        let (sender, queue) = channel();
        Self { waker, sender, queue, clients: Vec::new(), under_way: Slab::default(), outbox: Vec::new() }
    }

    /// A new client, for any thread.
    pub fn connect(&mut self) -> Client {
        self.connect_with(None)
    }

    /// A new client whose thread waits for something else, and is woken by `wake`.
    pub fn connect_with(&mut self, wake: Option<Wake>) -> Client {
        let (replies, answers) = channel();
        self.clients.push((replies, wake));
        let (sender, waker) = (self.sender.clone(), Arc::clone(&self.waker));
        Client { number: self.clients.len() - 1, sender, waker, answers, tags: 0 }
    }

    fn submit(
        &mut self,
        (client, tag): (usize, u64),
        request: VolumeRequest,
        payload: Payload,
        context: &mut Context<'_>,
    ) {
        let number = self.under_way.insert((client, tag));
        if let Err(refused) = context.submit(number as u64, request, payload) {
            self.under_way.remove(number);
            let error = match refused {
                Refused::Request(error) => error.into(),
                other => VolumeError::Io(other.to_string()),
            };
            self.outbox.push((client, Completion { token: tag, result: Err(error), bytes: Vec::new() }));
        }
    }
}

impl FrontEnd for ChannelFront {
    fn name(&self) -> String {
        "clients inside the program".to_owned()
    }

    fn start(&mut self, _desk: &mut Context<'_>) -> io::Result<()> {
        Ok(())
    }

    fn ready(&mut self, _key: usize, _what: Readiness, _desk: &mut Context<'_>) {}

    fn turn(&mut self, context: &mut Context<'_>) -> bool {
        for _ in 0..TAKEN_MAX {
            match self.queue.try_recv() {
                Ok(Message::Submit { client, tag, request, payload }) => {
                    self.submit((client, tag), request, payload, context);
                }
                Ok(Message::GiveUp { client, tag }) => {
                    if let Some((number, _)) = self.under_way.iter().find(|(_, asked)| **asked == (client, tag)) {
                        context.give_up(number as u64);
                    }
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    fn answered(&mut self, answered: Answered<'_>) {
        let Some((client, tag)) = self.under_way.remove(answered.tag as usize) else { return };
        let mut bytes = Vec::with_capacity(answered.data.len());
        answered.data.copy_to(&mut bytes);
        let result = match answered.answer {
            Answer::Done => Ok(()),
            Answer::Dropped => Err(VolumeError::Dropped),
            Answer::Failed if answered.no_room => Err(VolumeError::NoRoom),
            Answer::Failed => Err(VolumeError::WornOut),
            Answer::Unread { block } => Err(VolumeError::Unread { block }),
        };
        self.outbox.push((client, Completion { token: tag, result, bytes }));
    }

    fn send(&mut self, _desk: &mut Context<'_>) {
        for (client, reply) in self.outbox.drain(..) {
            if let Some((client, wake)) = self.clients.get(client) {
                // A client that has gone does not want to know.
                let _ = client.send(reply);
                wake.iter().for_each(|wake| wake());
            }
        }
    }

    fn pins(&self, _volume: VolumeId) -> bool {
        !self.clients.is_empty()
    }

    fn stop(&mut self) {
        self.clients.clear();
    }
}

/// A client inside the program. Requests may overtake each other.
pub struct Client {
    number: usize,
    sender: Sender<Message>,
    waker: Arc<mio::Waker>,
    answers: Receiver<Completion>,
    tags: u64,
}

/// A blocking call does not wait longer.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// Sends a request under a tag of the client's own.
    ///
    /// Errors: the engine has ended.
    pub fn submit(&self, tag: u64, request: VolumeRequest, payload: Payload) -> Result<(), VolumeError> {
        self.tell(Message::Submit { client: self.number, tag, request, payload })
    }

    /// Gives a request up; its answer comes when nothing can come of it any more.
    ///
    /// Errors: the engine has ended.
    pub fn give_up(&self, tag: u64) -> Result<(), VolumeError> {
        self.tell(Message::GiveUp { client: self.number, tag })
    }

    fn tell(&self, message: Message) -> Result<(), VolumeError> {
        self.sender.send(message).map_err(|_| VolumeError::Ended)?;
        self.waker.wake().map_err(|_| VolumeError::Ended)
    }

    /// The next completion, of any request; tags are its token.
    ///
    /// Errors: none in time; the engine has ended.
    pub fn next(&self, patience: Duration) -> Result<Completion, VolumeError> {
        self.answers.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => VolumeError::Late(SimSpan::from_ns(patience.as_nanos() as u64)),
            RecvTimeoutError::Disconnected => VolumeError::Ended,
        })
    }

    /// Completions that have come, of any requests.
    ///
    /// Errors: the engine has ended.
    pub fn take(&self, into: &mut Vec<Completion>) -> Result<(), VolumeError> {
        loop {
            match self.answers.try_recv() {
                Ok(completion) => into.push(completion),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(VolumeError::Ended),
            }
        }
    }

    /// The volume of these properties, for this client alone.
    pub fn volume(self, info: VolumeInfo) -> ChannelVolume {
        ChannelVolume { client: self, info, clock: WallClock::begin() }
    }

    /// Asks and waits for the answer, with no other request of this client under way.
    ///
    /// Errors: refused, given up, too late, or the engine has ended.
    pub fn call(
        &mut self,
        volume: VolumeId,
        operation: Operation,
        first: u64,
        count: u32,
        payload: Payload,
    ) -> Result<Vec<u8>, VolumeError> {
        self.carry_out(VolumeRequest { volume, operation, first, count, source: 0 }, payload)
    }

    /// Asks and waits for the answer, as [`Client::call`] does.
    fn carry_out(&mut self, request: VolumeRequest, payload: Payload) -> Result<Vec<u8>, VolumeError> {
        self.tags += 1;
        let tag = self.tags;
        self.submit(tag, request, payload)?;
        loop {
            let completion = self.next(PATIENCE)?;
            // Completions of calls that came too late for their caller.
            if completion.token == tag {
                return completion.result.map(|()| completion.bytes);
            }
        }
    }

    /// Reads `count` blocks.
    ///
    /// Errors: as [`Client::call`].
    pub fn read(&mut self, volume: VolumeId, first: u64, count: u32) -> Result<Vec<u8>, VolumeError> {
        self.call(volume, Operation::Read, first, count, Payload::None)
    }

    /// Lets `count` blocks from `first` on take over the data of those from `source` on.
    ///
    /// Errors: as [`Client::call`].
    pub fn remap(&mut self, volume: VolumeId, first: u64, source: u64, count: u32) -> Result<(), VolumeError> {
        let request = VolumeRequest { volume, operation: Operation::Remap, first, count, source };
        self.carry_out(request, Payload::None).map(drop)
    }

    /// Writes whole blocks of 4 KiB.
    ///
    /// Errors: as [`Client::call`].
    pub fn write(&mut self, volume: VolumeId, first: u64, bytes: Vec<u8>) -> Result<(), VolumeError> {
        let count = (bytes.len() / flashyard_flash::SLOT_BYTES as usize) as u32;
        self.call(volume, Operation::Write, first, count, Payload::Bytes(bytes)).map(drop)
    }
}

/// One volume of the enclosure, for a client inside the program.
pub struct ChannelVolume {
    client: Client,
    info: VolumeInfo,
    clock: WallClock,
}

impl Volume for ChannelVolume {
    fn info(&self) -> VolumeInfo {
        self.info
    }

    fn submit(
        &mut self,
        _now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        check(request, &self.info.limits)?;
        payload.check(request, self.info.block_bytes)?;
        self.client.submit(token, VolumeRequest { volume: self.info.id, ..*request }, payload)
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        match self.client.next(self.clock.left(until)) {
            Ok(completion) => into.push(completion),
            Err(VolumeError::Late(_)) => {}
            Err(error) => return Err(error),
        }
        into.extend(self.client.answers.try_iter());
        Ok(self.clock.now())
    }
}
