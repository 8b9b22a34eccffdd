//! A front end inside the program: clients on other threads, for tests, load and embedding.

use crate::front::{Answered, Context, FrontEnd, Payload, Readiness};
use flashyard_blk::{Operation, VolumeRequest};
use flashyard_kernel::Slab;
use flashyard_served::{Answer, Refused};
use flashyard_units::VolumeId;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

/// Requests taken from the queue in one turn, at most.
const TAKEN_MAX: usize = 256;

/// An answer to a client.
#[derive(Debug)]
pub struct Reply {
    /// The request's tag.
    pub tag: u64,
    /// How it ended; refused when the enclosure does not have what it is about.
    pub answer: Result<Answer, Refused>,
    /// Whether a write has failed because the disk that keeps the drives' bytes is full.
    pub no_room: bool,
    /// Data that a read has found.
    pub data: Vec<u8>,
}

enum Message {
    Submit { client: usize, tag: u64, request: VolumeRequest, payload: Payload },
    GiveUp { client: usize, tag: u64 },
}

/// Why a client does not get an answer.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The engine has ended.
    #[error("the engine has ended")]
    Ended,
    /// Nothing came in time.
    #[error("no answer in {0:?}")]
    Late(Duration),
    /// The enclosure does not have what was asked for.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The request was given up.
    #[error("the request was given up")]
    Dropped,
    /// A write to a drive that is worn out.
    #[error("the drive is worn out and takes no more writes")]
    WornOut,
    /// A write of bytes for which the disk below the drive has no room.
    #[error("the disk that keeps the drive's bytes is full")]
    NoRoom,
    /// A read of data that the drive could not correct.
    #[error("the drive cannot correct what it reads at block {block}")]
    Unread {
        /// The first block of it.
        block: u64,
    },
}

/// The front end of clients inside the program.
pub struct ChannelFront {
    waker: Arc<mio::Waker>,
    sender: Sender<Message>,
    queue: Receiver<Message>,
    clients: Vec<Sender<Reply>>,
    /// Client and tag of each request under way, by the front end's tag.
    under_way: Slab<(usize, u64)>,
    /// Answers of this turn: a woken client may take the processor, so none is before all are ready.
    outbox: Vec<(usize, Reply)>,
}

impl ChannelFront {
    /// A front end without clients; `waker` is that of its engine.
    pub fn new(waker: Arc<mio::Waker>) -> Self {
        let (sender, queue) = channel();
        Self { waker, sender, queue, clients: Vec::new(), under_way: Slab::default(), outbox: Vec::new() }
    }

    /// A new client, for any thread.
    pub fn connect(&mut self) -> Client {
        let (replies, answers) = channel();
        self.clients.push(replies);
        let (sender, waker) = (self.sender.clone(), Arc::clone(&self.waker));
        Client { number: self.clients.len() - 1, sender, waker, answers, tags: 0 }
    }

    fn reply(&mut self, client: usize, reply: Reply) {
        self.outbox.push((client, reply));
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
            self.reply(client, Reply { tag, answer: Err(refused), no_room: false, data: Vec::new() });
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
        let mut data = Vec::with_capacity(answered.data.len());
        answered.data.copy_to(&mut data);
        self.reply(client, Reply { tag, answer: Ok(answered.answer), no_room: answered.no_room, data });
    }

    fn send(&mut self, _desk: &mut Context<'_>) {
        for (client, reply) in self.outbox.drain(..) {
            if let Some(client) = self.clients.get(client) {
                // A client that has gone does not want to know.
                let _ = client.send(reply);
            }
        }
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
    answers: Receiver<Reply>,
    tags: u64,
}

/// A blocking call does not wait longer.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// Sends a request under a tag of the client's own.
    ///
    /// Errors: the engine has ended.
    pub fn submit(&self, tag: u64, request: VolumeRequest, payload: Payload) -> Result<(), ClientError> {
        self.tell(Message::Submit { client: self.number, tag, request, payload })
    }

    /// Gives a request up; its answer comes when nothing can come of it any more.
    ///
    /// Errors: the engine has ended.
    pub fn give_up(&self, tag: u64) -> Result<(), ClientError> {
        self.tell(Message::GiveUp { client: self.number, tag })
    }

    fn tell(&self, message: Message) -> Result<(), ClientError> {
        self.sender.send(message).map_err(|_| ClientError::Ended)?;
        self.waker.wake().map_err(|_| ClientError::Ended)
    }

    /// The next answer, of any request.
    ///
    /// Errors: none in time; the engine has ended.
    pub fn next(&self, patience: Duration) -> Result<Reply, ClientError> {
        self.answers.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => ClientError::Late(patience),
            RecvTimeoutError::Disconnected => ClientError::Ended,
        })
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
    ) -> Result<Vec<u8>, ClientError> {
        self.carry_out(VolumeRequest { volume, operation, first, count, source: 0 }, payload)
    }

    /// Asks and waits for the answer, as [`Client::call`] does.
    fn carry_out(&mut self, request: VolumeRequest, payload: Payload) -> Result<Vec<u8>, ClientError> {
        self.tags += 1;
        let tag = self.tags;
        self.submit(tag, request, payload)?;
        loop {
            let reply = self.next(PATIENCE)?;
            // Answers to calls that came too late for their caller.
            if reply.tag == tag {
                return match reply.answer? {
                    Answer::Done => Ok(reply.data),
                    Answer::Dropped => Err(ClientError::Dropped),
                    Answer::Failed if reply.no_room => Err(ClientError::NoRoom),
                    Answer::Failed => Err(ClientError::WornOut),
                    Answer::Unread { block } => Err(ClientError::Unread { block }),
                };
            }
        }
    }

    /// Reads `count` blocks.
    ///
    /// Errors: as [`Client::call`].
    pub fn read(&mut self, volume: VolumeId, first: u64, count: u32) -> Result<Vec<u8>, ClientError> {
        self.call(volume, Operation::Read, first, count, Payload::None)
    }

    /// Lets `count` blocks from `first` on take over the data of those from `source` on.
    ///
    /// Errors: as [`Client::call`].
    pub fn remap(&mut self, volume: VolumeId, first: u64, source: u64, count: u32) -> Result<(), ClientError> {
        let request = VolumeRequest { volume, operation: Operation::Remap, first, count, source };
        self.carry_out(request, Payload::None).map(drop)
    }

    /// Writes whole blocks of 4 KiB.
    ///
    /// Errors: as [`Client::call`].
    pub fn write(&mut self, volume: VolumeId, first: u64, bytes: Vec<u8>) -> Result<(), ClientError> {
        let count = (bytes.len() / flashyard_flash::SLOT_BYTES as usize) as u32;
        self.call(volume, Operation::Write, first, count, Payload::Bytes(bytes)).map(drop)
    }
}
