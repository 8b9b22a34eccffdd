//! Drives as subsystems of the target: what hosts are told of them, what hosts ask of them, and what of it is kept.

use super::self_test::SelfTests;
use super::telemetry::{self, Seen};
use super::{erasure, health, manage};
use crate::front::{BlockState, Context};
use crate::media::{Life, RecordKind};
use crate::namespaces::{ManageError, NAMESPACES_MAX, NamespaceInfo};
use crate::reserved::{kept_in, record_of};
use flashyard_flash::SLOT_BYTES;
use flashyard_nvme::Status;
use flashyard_nvme::feature::RetirementRule;
use flashyard_nvme::log::SmartLog;
use flashyard_nvmf::target::{
    Abilities, Demand, Management, Namespace, Subsystem, Target, Wish, WriteHints, erasure_of, has_changes,
    judge_attachment, lose_power, next_change, restore_reservations, restore_zones, set_abilities, set_management,
    set_namespaces_by, set_telemetry, set_used_blocks, settle_change, strangers_to,
};
use flashyard_served::{Control, Refused};
use flashyard_units::VolumeId;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How often a page of capacity is computed because hosts read it, at most.
const REFRESH_PERIOD: Duration = Duration::from_millis(5);
/// How often controllers learn the health of their drives.
const HEALTH_PERIOD: Duration = Duration::from_millis(500);

/// The subsystems of a target, in the order of its configuration.
pub(super) struct Subsystems {
    /// Volume of each, which is its first namespace if it has that.
    volumes: Vec<VolumeId>,
    /// The first namespace of each as it was given: the others take after it.
    templates: Vec<Namespace>,
    /// Zoned ones whose drive is back, and whose zones are to be found again.
    to_restore: Vec<usize>,
    endurance_erases: u32,
    /// Demands of hosts that the enclosure has not carried out yet, by tag.
    demands: BTreeMap<u64, Demand>,
    /// Those that it has not heard of.
    to_ask: VecDeque<Demand>,
    demands_made: u64,
    /// Self-tests of each that is a drive.
    self_tests: Vec<Option<SelfTests>>,
    /// When the health of the drives is reported next.
    tell_health: Duration,
    /// When a page of capacity that was read may be computed again.
    refresh_at: Duration,
}

impl Subsystems {
    /// Volumes behind `subsystems`, whose blocks take `endurance_erases`.
    pub(super) fn new(subsystems: &[Subsystem], volumes: Vec<VolumeId>, endurance_erases: u32) -> Self {
        let template = |subsystem: &Subsystem| subsystem.namespaces.first().cloned();
        Self {
            volumes,
            templates: subsystems.iter().map(|it| template(it).unwrap_or(Namespace::new(1, 1, 12))).collect(),
            to_restore: Vec::new(),
            endurance_erases,
            demands: BTreeMap::new(),
            to_ask: VecDeque::new(),
            demands_made: 0,
            self_tests: Vec::new(),
            tell_health: Duration::ZERO,
            refresh_at: Duration::ZERO,
        }
    }

    /// The volume of a subsystem.
    pub(super) fn volume(&self, subsystem: usize) -> VolumeId {
        self.volumes[subsystem]
    }

    /// The subsystem of a volume.
    pub(super) fn of(&self, volume: VolumeId) -> Option<usize> {
        self.volumes.iter().position(|&of_subsystem| of_subsystem == volume)
    }

    /// Hosts may come from now on: they find drives as an earlier process has left them.
    pub(super) fn start(&mut self, target: &mut Target, context: &mut Context<'_>) {
        for subsystem in 0..self.volumes.len() {
            self.take_shape(target, subsystem, None, context);
            let is_of_one_drive = context.formats(self.volumes[subsystem]).len() > 1;
            set_abilities(
                target,
                subsystem,
                Abilities { fused: context.has_map(), uncorrectable: is_of_one_drive, self_test: is_of_one_drive },
            );
            let tests = is_of_one_drive.then(|| SelfTests::start(self.volumes[subsystem], context));
            tests.iter().for_each(|tests| tests.tell(target, subsystem));
            self.self_tests.push(tests);
            if is_zoned(target, subsystem) {
                context.zoned.insert(self.volumes[subsystem]);
                self.find_zones(target, subsystem, context);
            }
            if let Some(kept) = context.record(self.volumes[subsystem], RecordKind::Reservations).and_then(kept_in) {
                restore_reservations(target, subsystem, &kept);
                self.reserve(target, subsystem, context);
            }
        }
        self.tell_health(target, context);
    }

    /// Does what is due: tells controllers the health of their drives.
    pub(super) fn turn(&mut self, target: &mut Target, context: &Context<'_>) {
        if context.elapsed() >= self.tell_health {
            self.tell_health = context.elapsed() + HEALTH_PERIOD;
            self.tell_health(target, context);
        }
        self.refresh(target, context);
        for subsystem in 0..self.volumes.len() {
            if self.self_tests[subsystem].as_ref().is_some_and(|tests| tests.is_due(context.elapsed())) {
                self.test(target, subsystem, context);
            }
        }
    }

    /// Whether [`Subsystems::turn`] is to be called soon again, and when at the latest.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.self_tests.iter().flatten().filter_map(SelfTests::wake_at).min()
    }

    /// Goes on with the self-test of a drive.
    fn test(&mut self, target: &mut Target, subsystem: usize, context: &Context<'_>) {
        let drive = self.volumes[subsystem];
        let warnings = health::figures(&context.health(drive), &Life::default(), 0, self.endurance_erases).smart;
        let Some(tests) = &mut self.self_tests[subsystem] else { return };
        tests.go_on(target, warnings.critical_warning, drive, context);
        tests.tell(target, subsystem);
    }

    fn tell_health(&mut self, target: &mut Target, context: &Context<'_>) {
        (0..self.volumes.len()).for_each(|subsystem| self.tell_health_of(target, subsystem, context));
    }

    fn tell_health_of(&mut self, target: &mut Target, subsystem: usize, context: &Context<'_>) {
        let drive = self.volumes[subsystem];
        let (health, before) = (context.health(drive), context.before(drive));
        let life = before.until(&health, context.elapsed(), 0);
        let (bytes, free_bytes) = context.capacity_bytes(drive);
        let mut figures = health::figures(&health, &life, bytes, self.endurance_erases);
        figures.smart.error_entries = SmartLog::counter(before.error_entries);
        figures.unallocated_bytes = free_bytes;
        if context.is_divided(drive) {
            for NamespaceInfo { nsid, volume, .. } in context.namespaces(drive) {
                set_used_blocks(target, subsystem, nsid, context.used_blocks(volume).unwrap_or_default());
            }
        } else {
            figures.used_blocks = context.used_blocks(drive);
        }
        // A drive knows nothing yet of an erasure that waits to be handed on: hosts would hear of its end.
        self.to_ask.extend(target.take_demands());
        let is_it = |demand: &Demand| demand.subsystem == subsystem && erasure::wanted(&demand.wish).is_some();
        let waits = self.to_ask.iter().any(is_it);
        figures.erasure = if waits { erasure_of(target, subsystem) } else { erasure::of(drive, context) };
        let units = bytes / u64::from(SLOT_BYTES);
        figures.capacity = context.capacity(drive).map(|left| health::capacity(&health, &life, &left, units));
        let warnings = figures.smart.critical_warning;
        target.set_figures(subsystem, figures);
        if let Some(layout) = context.layout(drive) {
            let of = |it: NamespaceInfo| {
                let volume = context.volume(it.volume)?;
                Some((it.nsid, volume.limits.blocks, context.used_blocks(it.volume).unwrap_or_default()))
            };
            let namespaces: Vec<_> = context.namespaces(drive).into_iter().filter_map(of).collect();
            let self_tests = self.self_tests.get(subsystem).and_then(Option::as_ref);
            let seen = Seen {
                health: &health,
                life: &life,
                superblocks: layout.superblocks,
                free_bytes,
                namespaces: &namespaces,
                self_tests: self_tests.map_or("never", SelfTests::state),
                erases: &context.erase_counts(drive),
            };
            set_telemetry(target, subsystem, telemetry::texts(&seen), warnings);
        }
    }

    /// Lets hosts that look at a drive again and again see what it is like now, though not more often than this pays.
    fn refresh(&mut self, target: &mut Target, context: &Context<'_>) {
        if !target.has_looks() || context.elapsed() < self.refresh_at {
            return;
        }
        self.refresh_at = context.elapsed() + REFRESH_PERIOD;
        target.take_looks().into_iter().for_each(|subsystem| self.tell_health_of(target, subsystem, context));
    }

    /// Tells hosts what the blocks of a drive are, and what sizes of writes suit it: a die row, which one command programs, and
    /// one of every die.
    fn take_shape(&self, target: &mut Target, subsystem: usize, by: Option<&Demand>, context: &Context<'_>) {
        let drive = self.volumes[subsystem];
        let Some(layout) = context.layout(drive) else { return };
        let template = &self.templates[subsystem];
        let shape = |info: NamespaceInfo| {
            let info_volume = info.volume;
            let volume = context.volume(info_volume)?;
            let unit = context.blocks_of_unit(info.volume) as u32;
            let granularity = layout.slots_per_die_row.saturating_mul(unit);
            let hints = WriteHints { granularity, optimal: granularity.saturating_mul(layout.dies), unit };
            let mut namespace = manage::namespace(template, info);
            namespace.hints = Some(hints);
            namespace.keeps_reservations = true;
            // Zones have their size and their blocks from the start, and are not formatted.
            if namespace.zones.is_none() {
                namespace.blocks = volume.limits.blocks;
                namespace.block_log2 = volume.block_bytes.trailing_zeros() as u8;
                namespace.metadata = context.metadata(info_volume);
                namespace.formats = context.formats(drive);
            }
            Some(namespace)
        };
        let namespaces = context.namespaces(drive).into_iter().filter_map(shape).collect();
        let taken = set_namespaces_by(target, subsystem, namespaces, by);
        debug_assert!(taken.is_ok(), "a drive has blocks, and hints contradict nothing");
        let is_manageable = context.can_divide(drive) && template.zones.is_none();
        let management = Management { namespaces_max: NAMESPACES_MAX, formats: context.formats(drive) };
        set_management(target, subsystem, is_manageable.then_some(management));
    }

    /// Finds the write pointers of a zoned drive by its map, and keeps clients out that know nothing of zones.
    fn find_zones(&self, target: &mut Target, subsystem: usize, context: &mut Context<'_>) {
        let volume = self.volumes[subsystem];
        let holds_anything = context.used_blocks(volume) != Some(0);
        let is_written = |block| holds_anything && context.block_state(volume, block) != BlockState::Unmapped;
        restore_zones(target, subsystem, is_written);
        context.reserve(volume, target.strangers(subsystem));
    }

    /// Lets the other front ends know what their clients may still do to the namespaces of a drive.
    fn reserve(&self, target: &Target, subsystem: usize, context: &mut Context<'_>) {
        let drive = self.volumes[subsystem];
        for NamespaceInfo { nsid, volume, .. } in context.namespaces(drive) {
            context.reserve(volume, strangers_to(target, subsystem, nsid));
        }
    }

    /// Carries a change of reservations out that outlasts a loss of power: it is kept before its host is answered. Lets the other front
    /// ends know of all changes. Returns whether more wait: each is a file of its own, and other clients have their turn
    /// between two.
    pub(super) fn follow_reservations(&self, target: &mut Target, context: &mut Context<'_>) -> bool {
        if let Some(change) = next_change(target) {
            let drive = self.volumes[change.subsystem()];
            let kept = context.keep_record(drive, RecordKind::Reservations, &record_of(&change.record(target)));
            if let Err(error) = &kept {
                tracing::error!(volume = %drive, %error, "the reservations of a drive stay as they are");
            }
            settle_change(target, change, kept.is_ok());
        }
        for subsystem in target.take_reserved() {
            self.reserve(target, subsystem, context);
        }
        has_changes(target)
    }

    /// Lets hosts in again to zoned drives that are back, once what they had asked for before has come to an end: `is_at_work` tells of a
    /// volume whether something of that is under way.
    pub(super) fn restore(
        &mut self,
        target: &mut Target,
        is_at_work: impl Fn(VolumeId) -> bool,
        context: &mut Context<'_>,
    ) {
        if self.to_restore.is_empty() {
            return;
        }
        for subsystem in std::mem::take(&mut self.to_restore) {
            if is_at_work(self.volumes[subsystem]) {
                self.to_restore.push(subsystem);
                continue;
            }
            self.find_zones(target, subsystem, context);
            target.set_away(subsystem, false);
        }
    }

    /// Hands on what hosts want of drives, which keep some of it on a disk: one a turn. Returns whether more wait.
    pub(super) fn ask_drives(&mut self, target: &mut Target, context: &mut Context<'_>) -> bool {
        self.to_ask.extend(target.take_demands());
        if let Some(demand) = self.to_ask.pop_front() {
            self.ask_drive(demand, target, context);
        }
        !self.to_ask.is_empty()
    }

    fn ask_drive(&mut self, mut demand: Demand, target: &mut Target, context: &mut Context<'_>) {
        // The drive answers in this turn, before another one is asked.
        if let Err(status) = judge_attachment(target, &mut demand) {
            return target.settle(&demand, status);
        }
        let volume = self.volumes[demand.subsystem];
        self.demands_made += 1;
        if let Some((nsid, erase)) = erasure::wanted(&demand.wish) {
            context.erase(self.demands_made, (volume, nsid), erase);
            self.demands.insert(self.demands_made, demand);
            return;
        }
        if let Wish::SelfTest { nsid, code } = demand.wish {
            if let Some(tests) = &mut self.self_tests[demand.subsystem] {
                tests.ask((nsid, code), &demand, volume, context);
                tests.tell(target, demand.subsystem);
            }
            target.settle(&demand, Status::SUCCESS);
            return;
        }
        if let Some(wish) = manage::wanted(&demand.wish) {
            context.manage(self.demands_made, volume, wish);
            self.demands.insert(self.demands_made, demand);
            return;
        }
        let drive = context.first_drive_of(volume);
        let control = match demand.wish {
            Wish::Degraded(on) => Control::Degrade { drive, on },
            Wish::Retirement(RetirementRule { rate_ppm, retries }) => Control::Retire {
                drive,
                rate: rate_ppm.map(|millionths| f64::from(millionths) / 1e6),
                retries: retries.map(u32::from),
            },
            _ => return,
        };
        self.demands.insert(self.demands_made, demand);
        context.control(self.demands_made, control);
    }

    /// A drive has done what a host wants, or has not.
    pub(super) fn controlled(&mut self, target: &mut Target, tag: u64, done: Result<(), Refused>) {
        let Some(demand) = self.demands.remove(&tag) else { return };
        let status = match done {
            Ok(()) => Status::SUCCESS,
            Err(refused) => {
                tracing::warn!(%refused, "a drive does not do what a host wants");
                Status::OPERATION_DENIED.do_not_retry()
            }
        };
        target.settle(&demand, status);
        // The host that asked may look at the result.
        self.tell_health = Duration::ZERO;
    }

    /// Namespaces are as a host wants them, or are not.
    pub(super) fn managed(&mut self, target: &mut Target, tag: u64, done: Result<u32, ManageError>) {
        let Some(demand) = self.demands.remove(&tag) else { return };
        manage::settle(target, &demand, done);
        self.tell_health = Duration::ZERO;
    }

    /// Something of a volume is other than it was.
    pub(super) fn changed(&mut self, target: &mut Target, volume: VolumeId, context: &mut Context<'_>) {
        if let Some(subsystem) = self.of(context.drive_volume(volume)) {
            let by = self.demands.values().find(|demand| manage::explains(demand, subsystem, context.nsid_of(volume)));
            self.take_shape(target, subsystem, by, context);
            // A format that begins may be over by the next look.
            self.test(target, subsystem, context);
            self.reserve(target, subsystem, context);
            self.tell_health_of(target, subsystem, context);
        }
    }

    /// The drive of a subsystem does not answer any more.
    pub(super) fn gone(&mut self, target: &mut Target, subsystem: usize, context: &Context<'_>) {
        target.set_away(subsystem, true);
        self.to_restore.retain(|&other| other != subsystem);
        if !context.has_power(self.volumes[subsystem]) {
            lose_power(target, subsystem);
            if let Some(tests) = &mut self.self_tests[subsystem] {
                tests.lose_power(self.volumes[subsystem], context);
                tests.tell(target, subsystem);
            }
        }
    }

    /// It is back.
    pub(super) fn back(&mut self, target: &mut Target, subsystem: usize) {
        if is_zoned(target, subsystem) {
            self.to_restore.push(subsystem);
        } else {
            target.set_away(subsystem, false);
        }
    }
}

/// Whether the namespaces of a subsystem have zones.
pub(super) fn is_zoned(target: &Target, subsystem: usize) -> bool {
    target.config().subsystems[subsystem].namespaces.iter().any(|namespace| namespace.zones.is_some())
}
