//! `flashyard serve` with a file that describes volumes.

use crate::arguments::ServeOptions;
use crate::fronts::{Addresses, Names};
use crate::hosts::HostList;
use crate::volume_page::VolumePage;
use crate::{Outcome, drive, fronts, output, parallel, secrets, volume_control};
use anyhow::{Context, Result, bail};
use flashyard_live::{FrontEnds, Limits};
use flashyard_nvmf::secret::Secret;
use flashyard_volumes::{Rack, Volumes, open};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Serves the volumes that `text`, of the file of the command line, describes.
pub(crate) fn serve(options: &ServeOptions, text: &str, hosts: HostList) -> Result<Outcome> {
    let shown = options.scenario.display();
    if let Some(flag) = stray(options) {
        bail!("{shown}: it describes volumes, and {flag} is for the drives of a scenario; leave it out");
    }
    let folder = options.scenario.parent().unwrap_or(Path::new(""));
    let opened = open(text, folder, secret, drive::open).with_context(|| shown.to_string())?;
    let Volumes { mut engine, names, nqn, mut rack } = opened;
    refuse_open_lender(options, &hosts, rack.lends_at())?;
    let in_flight_bytes = usize::try_from(options.in_flight).unwrap_or(usize::MAX);
    let fronts = engine.fronts_mut();
    fronts.set_limits(Limits { connections: options.connections.into(), in_flight_bytes, ..Limits::default() });
    let names = Names { nqn: options.nqn.as_deref().unwrap_or(&nqn), volumes: &names };
    // Volumes do not wear. A server that lends need not have any.
    if names.volumes.is_empty() {
        hosts.check(&[])?;
    } else {
        fronts::add_nvme(fronts, Addresses::of(options), &hosts, &names, &fronts::Traits::PLAIN)?;
    }
    options.nbd.as_ref().map(|address| fronts::add_nbd(fronts, address, &names)).transpose()?;
    options.vhost_user_blk.as_ref().map(|path| fronts::add_vhost_user(fronts, path)).transpose()?;
    fronts::record(options, fronts)?;
    let control = options.control.as_ref().map(|path| volume_control::open(path, engine.handle()));
    let _control = control.transpose()?;
    let page = options.dash.map(|address| VolumePage::start(address, engine.handle())).transpose()?;
    page.iter().for_each(|(_, url)| output::line(&format!("dashboard: {url}")));
    let lends_at = rack.lends_at();
    let exports = move |fronts: &mut FrontEnds, address, nqn: &str| {
        fronts::add_piece(fronts, address, nqn, &hosts).map_err(|error| output::told(&error))
    };
    rack.start(names.nqn, Arc::new(exports)).with_context(|| match lends_at {
        Some(address) => format!("{shown}: [lend]: {address} cannot be listened on"),
        None => shown.to_string(),
    })?;
    lends_at.iter().for_each(|address| output::line(&format!("lends at {address}")));
    let seconds = options.seconds.map(Duration::from_secs_f64);
    let mut ending = Ending::default();
    let reports = engine.run(|elapsed| {
        let ends = parallel::interrupted() || seconds.is_some_and(|seconds| elapsed >= seconds);
        ends && ending.may_end(&rack)
    })?;
    rack.end();
    reports.iter().for_each(|report| output::line(&report.to_string()));
    let is_flushed = reports.iter().all(|report| report.unflushed.is_none());
    Ok(if is_flushed { Outcome::Done } else { Outcome::Violated })
}

/// The end of a server whose consumers move what they have there first.
#[derive(Default)]
struct Ending {
    asked: bool,
    told: bool,
}

impl Ending {
    /// Whether no consumer has anything at the server any more, or the user has asked twice.
    fn may_end(&mut self, rack: &Rack) -> bool {
        if !std::mem::replace(&mut self.asked, true) {
            rack.leave();
        }
        if rack.has_left() || parallel::interrupted_again() {
            return true;
        }
        if !std::mem::replace(&mut self.told, true) {
            let left = rack.agreements().join(", ");
            output::line(&format!(
                "waits for consumers to move what they have here: {left}; Ctrl-C again ends at once"
            ));
        }
        false
    }
}

/// Refuses a lender that other machines reach and whose pieces any host may have.
fn refuse_open_lender(options: &ServeOptions, hosts: &HostList, lends_at: Option<SocketAddr>) -> Result<()> {
    let Some(address) = lends_at.filter(|address| !address.ip().to_canonical().is_loopback()) else { return Ok(()) };
    let opening = format!(
        "{}: [lend]: other machines reach {address}, and consumers prove nothing when they ask; use a network of the rack alone",
        options.scenario.display()
    );
    if !options.insecure {
        bail!("{opening}, and say --insecure");
    }
    if matches!(hosts, HostList::Any) {
        tracing::warn!("{opening}, or list the hosts that may have pieces by --hosts");
    }
    Ok(())
}

/// The first option that means nothing to volumes.
fn stray(options: &ServeOptions) -> Option<&'static str> {
    let given = [
        ("--set", !options.set.is_empty()),
        ("--seed", options.seed.is_some()),
        ("--data", options.data.is_some()),
        ("--prefault", options.prefault.is_some()),
        ("--pace", options.pace.is_some()),
        ("--journal", options.journal.is_some()),
        ("--load", options.load.is_some()),
    ];
    given.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag)
}

fn secret(path: &Path) -> Result<Secret, String> {
    let text = secrets::read_private("secret_file", path).map_err(|error| format!("{error:#}"))?;
    text.trim().parse().map_err(|error| format!("{}: {error}", path.display()))
}
