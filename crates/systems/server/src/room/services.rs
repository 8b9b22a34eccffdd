//! The `[services]` section of scenarios.

use crate::chain::{Chain, LINKS_MAX, Link};
use flashyard_describe::Purpose::Run;
use flashyard_describe::{Choice, ScenarioError, Section, Size, Time, is_in};
use flashyard_flash::SLOT_BYTES;
use flashyard_services::{Shares, VersionRoom};
use flashyard_units::{Bytes, Named, SimSpan};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) static SERVICES: Section = Section::of::<ServicesSection>("services", &[("services", &[Run])]);

/// A service that a runtime can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkName {
    Priority,
    Stripe,
    Mirror,
    Versions,
}

impl Named for LinkName {
    const ALL: &'static [Self] = &[Self::Priority, Self::Stripe, Self::Mirror, Self::Versions];

    fn name(self) -> &'static str {
        match self {
            Self::Priority => "priority",
            Self::Stripe => "stripe",
            Self::Mirror => "mirror",
            Self::Versions => "versions",
        }
    }
}

/// Blocks of the log of changes of a map of versions: 4 MiB. Source: \[A\].
pub(super) const VERSION_LOG: u64 = 1024;

/// Services that the runtime of a stack runs for each virtual drive: where, is the stack's choice.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServicesSection {
    /// Services from the guest's side on: `priority` (interactive requests before batch), then perhaps `stripe` or `mirror` over several drives, or
    /// `versions`, whose first is taken when the run begins. The volume is then twice as long: the version lies behind what is written.
    #[schemars(length(max = 4))]
    pub(super) chain: Vec<Choice<LinkName>>,
    /// Drives of each virtual drive under `stripe` and `mirror`.
    #[schemars(range(min = 2, max = 8))]
    pub(super) legs: u8,
    /// Bytes of a stripe on a drive before the next one.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "1 GiB"))]
    pub(super) chunk: Size,
    /// Bytes of a drive that keep what a version has and the volume has no more.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "4 TiB"))]
    pub(super) store: Size,
    /// The first stream of the load that is batch, from 0, for `priority`.
    pub(super) batch_from: u16,
    /// Of so many blocks one is batch's while there is interactive work.
    #[schemars(range(min = 1, max = 65_536))]
    pub(super) batch_one_in: u32,
    /// Orders under way at most.
    #[schemars(range(min = 1, max = 65_536))]
    pub(super) under_way: u32,
    /// Batch orders under way at most.
    #[schemars(range(min = 1, max = 65_536))]
    pub(super) batch_under_way: u32,
    /// Time without interactive work after which batch has all.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "10 s"))]
    pub(super) batch_hold: Time,
    /// Time of a core of the host that each service takes for a request.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    pub(super) cost: Time,
}

impl Default for ServicesSection {
    fn default() -> Self {
        let Shares { batch_from, batch_one_in, most, batch_most, hold } = Shares::published(1);
        Self {
            chain: Vec::new(),
            legs: 2,
            // [A] a common default of software RAID
            chunk: Size(Bytes::new(64 << 10)),
            // [A] as much as a busy hour writes
            store: Size(Bytes::new(4 << 30)),
            batch_from,
            batch_one_in,
            under_way: most,
            batch_under_way: batch_most,
            batch_hold: Time(hold),
            // [A] no more than a tenth of the runtime's own work
            cost: Time(SimSpan::from_ns(150)),
        }
    }
}

impl ServicesSection {
    /// The services of a virtual drive.
    ///
    /// Errors: more than there can be.
    pub(super) fn chain(&self) -> Result<Chain, ScenarioError> {
        if self.chain.len() > LINKS_MAX {
            let problem = format!("{} services, give at most {LINKS_MAX}", self.chain.len());
            return Err(ScenarioError::value("services.chain", problem));
        }
        let mut chain = Chain { cost: self.cost.0, ..Chain::default() };
        for (place, name) in chain.links.iter_mut().zip(&self.chain) {
            *place = Some(match name.0 {
                LinkName::Priority => Link::Priority(Shares {
                    batch_from: self.batch_from,
                    batch_one_in: self.batch_one_in,
                    most: self.under_way,
                    batch_most: self.batch_under_way,
                    hold: self.batch_hold.0,
                }),
                LinkName::Stripe => {
                    let chunk = (self.chunk.0.get() / u64::from(SLOT_BYTES)) as u32;
                    Link::Stripe { legs: self.legs, chunk }
                }
                LinkName::Mirror => Link::Mirror(self.legs),
                LinkName::Versions => {
                    let store = self.store.0.get() / u64::from(SLOT_BYTES);
                    Link::Versions(VersionRoom { slots: 1, store, log: VERSION_LOG })
                }
            });
        }
        Ok(chain)
    }
}

/// Why a key of `[services]` has no effect in a scenario.
pub(super) fn idle(key: &str, services: &ServicesSection) -> Option<String> {
    let has = |names: &[LinkName]| services.chain.iter().any(|name| names.contains(&name.0));
    let (needs, words): (&[LinkName], _) = match key {
        "services.legs" => (&[LinkName::Stripe, LinkName::Mirror], "stripe or mirror"),
        "services.chunk" => (&[LinkName::Stripe], "stripe"),
        "services.store" => (&[LinkName::Versions], "versions"),
        "services.under_way" => (&[LinkName::Priority], "priority"),
        key if key.starts_with("services.batch_") => (&[LinkName::Priority], "priority"),
        _ if is_in(key, "services") && key != "services.chain" => (LinkName::ALL, "a service"),
        _ => return None,
    };
    (!has(needs)).then(|| format!("services.chain has no {words}"))
}
