//! The `flashyard` program: runs scenarios, serves them, reproduces published results, looks at traces.
//!
//! Exit status: 0 done, 1 a reproduced number is outside its tolerance, a law does not hold, a fault lost data or a replay
//! differs, 2 bad input, or a design that cannot be run, 130 interrupted.

mod age;
mod arguments;
mod billboard;
mod byte_count;
mod control;
mod cvfs;
mod drive;
mod faults;
mod fit;
mod fronts;
mod hosts;
mod init;
mod load;
mod new_drive;
mod output;
mod parallel;
mod queues;
mod reproduce;
mod run;
mod secrets;
mod serve;
mod shells;
mod status;
mod systems;
mod tls_key;
mod trace;
mod unchanged;
mod volume_control;
mod volume_page;
mod volumes;
mod watch;
mod worlds;

use anyhow::Result;
use arguments::{Arguments, Command, TraceCommand};
use clap::Parser;
use std::process::ExitCode;

/// Memory in huge pages where the system grants them on request: the tables of a large drive are changed at random
/// places, and a third of that time goes into finding their pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Everything was done.
    Done,
    /// A number is outside its tolerance.
    OutsideTolerance,
    /// A rule of every run is broken: a law, or that a fault does no harm.
    Violated,
    /// Ctrl-C.
    Interrupted,
}

fn main() -> ExitCode {
    match execute(Arguments::parse()) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::OutsideTolerance | Outcome::Violated) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => {
            eprintln!("interrupted; files that were finished are kept");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {}", output::told(&error));
            ExitCode::from(2)
        }
    }
}

fn execute(arguments: Arguments) -> Result<Outcome> {
    match arguments.command {
        Command::Demo(options) => run::run(&options.run()),
        Command::Init(options) => init::init(&options),
        Command::NewDrive(options) => new_drive::new(&options),
        Command::Fit(options) => fit::run(&options),
        Command::Run(options) => run::run(&options),
        Command::Reproduce(options) => reproduce::reproduce(&options),
        Command::Age(options) => age::age(&options),
        Command::Faults(options) => faults::faults(&options),
        Command::Serve(options) => serve::serve(&options),
        Command::Replay(options) => serve::replay_journal(&options),
        Command::Ctl(options) => control::ctl(&options),
        Command::Load(options) => load::load(&options),
        Command::TlsKey(options) => tls_key::make(&options),
        Command::Billboard(options) => billboard::serve(&options),
        Command::Queues { command } => queues::run(&command),
        Command::Trace { command: TraceCommand::Info { file, format, json } } => {
            trace::info(&file, format.as_deref(), json)
        }
        Command::Trace { command: TraceCommand::Caches(options) } => trace::caches(&options),
        Command::Trace { command: TraceCommand::Convert(options) } => trace::convert(&options),
        Command::Cvfs { command } => cvfs::cvfs(&command),
        Command::Systems(options) => systems::systems(options.json),
        Command::Schema => {
            output::line(&flashyard_scenario::json_schema());
            Ok(Outcome::Done)
        }
        Command::Completions { shell } => shells::completions(shell),
        Command::Man { directory } => shells::manual(&directory),
    }
}
