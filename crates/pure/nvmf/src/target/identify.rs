//! Answers to Identify.

use super::abort::ABORTS_MAX;
use super::answer::Answer;
use super::config::{BlockFormat, COPY_RANGES_MAX, Limits, NVM_COMMAND_SET, Namespace, Subsystem, ZoneShape};
use super::directory::Target;
use super::session::{Session, controller_of};
use crate::NAMESPACES_MAX;
use flashyard_nvme::admin::{Identify, cns};
use flashyard_nvme::identify::{
    Descriptor, IdentifyController, IdentifyControllerNvm, IdentifyNamespace, IdentifyNamespaceIndependent, LbaFormat,
    command_sets, controller_list, descriptors, namespace_list,
};
use flashyard_nvme::property::VERSION_2_0;
use flashyard_nvme::protection::Tuple;
use flashyard_nvme::reservation;
use flashyard_nvme::text::{DISCOVERY_NQN, padded, zero_terminated};
use flashyard_nvme::zone::{self, IdentifyNamespaceZoned};
use flashyard_nvme::{Cqe, IDENTIFY_BYTES, NSID_ALL, Sqe, Status};
use zerocopy::{FromZeros, IntoBytes};

/// Blocks of this size or smaller are written atomically, whole commands are not.
const ATOMIC_BLOCKS_LESS_ONE: u16 = 0;

impl Session {
    /// Answers Identify: 4096 bytes in `reply`.
    pub(super) fn identify(&self, target: &mut Target, identify: &Identify, reply: &mut Vec<u8>) -> Answer {
        let Some(controller) = self.controller(target) else { return Answer::refusal(Status::CONTROLLER_PATHING) };
        let (id, place, sees_zones) = (controller.id, controller.subsystem, controller.sees_zones());
        let whole = target;
        let target = &*whole;
        let subsystem = place.and_then(|place| target.config.subsystems.get(place));
        let namespaces = subsystem.map_or(&[][..], |subsystem| &subsystem.namespaces);
        let namespaces_max = subsystem.map_or(NAMESPACES_MAX, Subsystem::namespaces_max);
        let is_attached = |nsid| controller_of(self, target).is_some_and(|controller| controller.has_namespace(nsid));
        let is_shown = |namespace: &&Namespace| sees_zones || namespace.zones.is_none();
        let is_visible = |namespace: &&Namespace| is_shown(namespace) && is_attached(namespace.nsid);
        let has_zones = namespaces.iter().any(|namespace| namespace.zones.is_some());
        let set = identify.command_set;
        let is_blocks = set == NVM_COMMAND_SET;
        // Those of a controller that has no zoned namespace are refused.
        let is_known_set = is_blocks || has_zones && set == zone::COMMAND_SET;
        let visible = namespaces.iter().filter(is_visible).filter(|namespace| namespace.nsid > identify.nsid);
        let later = visible.clone().map(|namespace| namespace.nsid);
        let allocated = namespaces.iter().filter(is_shown).map(|namespace| namespace.nsid);
        let of_set = visible.filter(|namespace| namespace.command_set() == set).map(|namespace| namespace.nsid);
        match identify.cns {
            cns::CONTROLLER => {
                reply.extend_from_slice(self.controller_structure(target, id, place).as_bytes());
            }
            cns::NAMESPACES_ACTIVE | cns::NAMESPACES_ALLOCATED if identify.nsid >= NSID_ALL - 1 => {
                return Answer::refusal(Status::INVALID_NAMESPACE);
            }
            cns::NAMESPACES_ACTIVE => namespace_list(reply, later),
            cns::NAMESPACES_ALLOCATED => namespace_list(reply, allocated.filter(|&nsid| nsid > identify.nsid)),
            cns::NAMESPACES_ACTIVE_OF_COMMAND_SET if is_known_set => namespace_list(reply, of_set),
            cns::CONTROLLER_OF_COMMAND_SET if is_blocks => {
                let limits = command_set_limits(target, subsystem);
                reply.extend_from_slice(limits.as_bytes());
            }
            // A Zone Append takes as much data as any other command.
            cns::CONTROLLER_OF_COMMAND_SET if is_known_set => zone::identify_controller(reply, 0),
            cns::NAMESPACE_OF_COMMAND_SET | cns::NAMESPACES_ACTIVE_OF_COMMAND_SET | cns::CONTROLLER_OF_COMMAND_SET
                if !is_known_set =>
            {
                return Answer::refusal(Status::INVALID_FIELD);
            }
            cns::CONTROLLERS_OF_NAMESPACE if identify.nsid == 0 || identify.nsid > namespaces_max => {
                return Answer::refusal(Status::INVALID_NAMESPACE);
            }
            cns::CONTROLLERS | cns::CONTROLLERS_OF_NAMESPACE => {
                let is_of_all = identify.cns == cns::CONTROLLERS;
                let controllers = target.controllers.iter().flatten();
                let same = controllers.filter(|controller| controller.subsystem == place);
                let named = same.filter(|controller| is_of_all || controller.has_namespace(identify.nsid));
                controller_list(reply, named.map(|c| c.id).filter(|id| *id >= identify.controller_id));
            }
            cns::COMMAND_SETS if has_zones => command_sets(reply, &[NVM_COMMAND_SET, zone::COMMAND_SET]),
            cns::COMMAND_SETS => command_sets(reply, &[NVM_COMMAND_SET]),
            cns::NAMESPACE
            | cns::NAMESPACE_DESCRIPTORS
            | cns::NAMESPACE_OF_COMMAND_SET
            | cns::NAMESPACE_INDEPENDENT
            | cns::NAMESPACE_ALLOCATED => {
                let is_meant = |namespace: &&Namespace| match identify.cns {
                    cns::NAMESPACE_ALLOCATED => is_shown(namespace),
                    _ => is_visible(namespace),
                };
                let found = subsystem.and_then(|subsystem| subsystem.namespace(identify.nsid)).filter(is_meant);
                let figures = place.map(|place| target.figures[place]).unwrap_or_default();
                let own = place.and_then(|place| target.used.get(&(place, identify.nsid)).copied());
                let used = own.or(figures.used_blocks.filter(|_| namespaces.len() == 1));
                let is_erasable = subsystem.is_some_and(Subsystem::is_erasable);
                let progress = place
                    .filter(|_| is_erasable)
                    .map_or(0, |place| target.figures[place].erasure.format_progress(identify.nsid));
                let formats = subsystem.map(formats_of).unwrap_or_default();
                let answer = identify_namespace(
                    identify,
                    (found, used),
                    (&formats, namespaces_max, &target.config.limits),
                    progress,
                    reply,
                );
                if let (Some(place), cns::NAMESPACE) = (place, identify.cns) {
                    whole.look(place);
                }
                return answer;
            }
            _ => return Answer::refusal(Status::INVALID_FIELD),
        }
        Answer::SUCCESS
    }

    fn controller_structure(&self, target: &Target, id: u16, place: Option<usize>) -> Box<IdentifyController> {
        let limits = &target.config.limits;
        let mut it = IdentifyController::zeroed();
        it.controller_id.set(id);
        it.version.set(VERSION_2_0);
        it.data_pages_max_log2 = limits.data_pages_max_log2;
        it.abort_limit = (ABORTS_MAX - 1) as u8;
        it.event_request_limit = limits.event_requests - 1;
        it.error_log_entries = super::controller::ERROR_ENTRIES as u8 - 1;
        // Commands and effects, parts of log pages, list of pages.
        it.log_attributes = 1 << 1 | 1 << 2 | 1 << 5;
        it.keep_alive_granularity.set(1);
        it.commands_max.set(limits.queue_entries);
        it.sgl.set(
            IdentifyController::SGL_SUPPORTED | IdentifyController::SGL_OFFSET | IdentifyController::SGL_TRANSPORT,
        );
        // Any command keeps the controller alive; 128-bit host identifiers.
        it.attributes.set(1 << 6 | 1 << 0);
        it.sq_entry_sizes = 0x66;
        it.cq_entry_sizes = 0x44;
        it.response_capsule_units.set(Cqe::BYTES as u32 / 16);
        it.sgl_descriptors_max = 1;
        // Disconnect is there.
        it.fabrics_optional.set(1);
        match place {
            None => {
                it.controller_kind = 2;
                it.firmware = padded("1.0");
                it.serial = padded("discovery");
                it.model = padded("flashyard discovery");
                it.subsystem_nqn = zero_terminated(DISCOVERY_NQN);
                it.async_events.set(IdentifyController::EVENT_DISCOVERY);
                it.command_capsule_units.set(Sqe::BYTES as u32 / 16);
            }
            Some(place) => fill_io_controller(&mut it, target, place),
        }
        it
    }
}

/// How much a Dataset Management command should ask for. All three limits are there, or none.
fn command_set_limits(target: &Target, subsystem: Option<&Subsystem>) -> IdentifyControllerNvm {
    let mut it = IdentifyControllerNvm::new_zeroed();
    let blocks = target.config.limits.deallocate_blocks;
    let block_log2 = subsystem.and_then(|subsystem| subsystem.namespaces.first()).map_or(12, |first| first.block_log2);
    let blocks = blocks.saturating_mul(1 << 12_u8.saturating_sub(block_log2));
    if subsystem.is_some() && blocks > 0 {
        it.dsm_ranges_max = u8::MAX;
        it.dsm_range_blocks_max.set(blocks);
        it.dsm_blocks_max.set(blocks.into());
    }
    it
}

/// Fields of a controller with namespaces that one of discovery lacks.
fn fill_io_controller(it: &mut IdentifyController, target: &Target, place: usize) {
    let limits = &target.config.limits;
    let subsystem: &Subsystem = &target.config.subsystems[place];
    it.controller_kind = 1;
    if target.insides.contains_key(&place) {
        it.log_attributes |= IdentifyController::LOG_TELEMETRY;
    }
    it.serial = padded(&subsystem.serial);
    it.model = padded(&subsystem.model);
    it.firmware = padded(&subsystem.firmware);
    it.subsystem_nqn = zero_terminated(&subsystem.nqn);
    it.arbitration_burst = 6;
    // Several ports, several controllers, ANA.
    it.multipath = 1 << 0 | 1 << 1 | 1 << 3;
    it.async_events.set(IdentifyController::EVENT_NAMESPACES | IdentifyController::EVENT_ANA);
    // One slot, read-only.
    it.firmware_updates = 1 << 1 | 1;
    it.temperature_warning_k.set(343);
    it.temperature_critical_k.set(358);
    it.capacity_total = u128::from(target.figures[place].capacity_bytes).to_le_bytes();
    it.capacity_unallocated = u128::from(target.figures[place].unallocated_bytes).to_le_bytes();
    it.namespaces_max.set(subsystem.namespaces_max());
    it.namespaces_allowed_max.set(subsystem.namespaces_max());
    let uncorrectable = if subsystem.takes_uncorrectable() { IdentifyController::WRITE_UNCORRECTABLE } else { 0 };
    it.nvm_optional.set(
        uncorrectable
            | IdentifyController::COMPARE
            | IdentifyController::DATASET_MANAGEMENT
            | IdentifyController::WRITE_ZEROES
            | IdentifyController::RESERVATIONS
            | IdentifyController::TIMESTAMP
            | IdentifyController::VERIFY
            | IdentifyController::COPY,
    );
    if subsystem.is_erasable() {
        let managed = if subsystem.management.is_some() { IdentifyController::NAMESPACE_MANAGEMENT } else { 0 };
        it.admin_optional.set(IdentifyController::FORMAT | managed);
        let sanitize = IdentifyController::SANITIZE_BLOCK_ERASE | IdentifyController::SANITIZE_DEALLOCATES;
        it.sanitize.set(sanitize | IdentifyController::SANITIZE_LEAVES_MEDIUM);
    }
    if subsystem.abilities.self_test {
        it.admin_optional.set(it.admin_optional.get() | IdentifyController::SELF_TEST);
        it.self_test_options = IdentifyController::SELF_TEST_SINGLE;
        it.self_test_time_min.set(SELF_TEST_MIN);
    }
    // Descriptors of format 0h.
    it.copy_formats.set(1);
    // Flush of all namespaces at once is not there.
    it.write_cache = 0b100 | u8::from(subsystem.has_write_cache);
    if subsystem.takes_remaps() {
        it.announce_remap();
    }
    if subsystem.abilities.fused {
        it.fused.set(IdentifyController::COMPARE_AND_WRITE);
        it.atomic_compare_write.set(ATOMIC_BLOCKS_LESS_ONE);
    }
    it.atomic_write_normal.set(ATOMIC_BLOCKS_LESS_ONE);
    it.atomic_write_power_fail.set(ATOMIC_BLOCKS_LESS_ONE);
    let groups = subsystem.namespaces.iter().map(|namespace| namespace.ana_group);
    let group_max = groups.max().unwrap_or(1);
    it.ana_transition_s = 10;
    // All five states are reported.
    it.ana_capabilities = 0x1F;
    it.ana_group_max.set(group_max);
    it.ana_groups.set(group_max);
    it.command_capsule_units.set((Sqe::BYTES as u32 + limits.capsule_data_bytes) / 16);
    it.fabrics_attributes = u8::from(subsystem.static_controllers);
    it.power[0].power_max.set(2500);
}

/// Capabilities of a namespace for reservations.
fn reservations_of(namespace: &Namespace) -> u8 {
    let persistence = if namespace.keeps_reservations { reservation::CAPABILITY_PERSISTENCE } else { 0 };
    reservation::CAPABILITIES | persistence
}

/// Minutes that an extended self-test takes, as it is announced. \[A\] Drives are looked through within seconds; no field has less.
const SELF_TEST_MIN: u16 = 1;

/// Structures about one namespace.
fn identify_namespace(
    identify: &Identify,
    (found, used): (Option<&Namespace>, Option<u64>),
    (formats, namespaces_max, limits): (&[BlockFormat], u32, &Limits),
    format_progress: u8,
    reply: &mut Vec<u8>,
) -> Answer {
    let is_all = identify.nsid == NSID_ALL && identify.cns == cns::NAMESPACE;
    if identify.nsid == 0 || identify.nsid > namespaces_max && !is_all {
        return Answer::refusal(Status::INVALID_NAMESPACE);
    }
    match (identify.cns, found) {
        (cns::NAMESPACE, _) if is_all => {
            // The part common to all namespaces, also to those that hosts may create.
            let mut common = IdentifyNamespace::zeroed();
            fill_formats(&mut common, formats);
            reply.extend_from_slice(common.as_bytes());
        }
        (cns::NAMESPACE | cns::NAMESPACE_ALLOCATED, Some(namespace)) => {
            reply.extend_from_slice(namespace_structure(namespace, used, limits, format_progress).as_bytes());
        }
        (cns::NAMESPACE_INDEPENDENT, Some(namespace)) => {
            let it = IdentifyNamespaceIndependent {
                features: 0,
                sharing: u8::from(!namespace.is_private),
                reservations: reservations_of(namespace),
                format_progress,
                ana_group: namespace.ana_group.into(),
                attributes: u8::from(namespace.is_read_only),
                reserved_9: 0,
                nvm_set: 0.into(),
                endurance_group: 0.into(),
                status: 1,
                reserved_15: [0; 4081],
            };
            reply.extend_from_slice(it.as_bytes());
        }
        (cns::NAMESPACE_DESCRIPTORS, Some(namespace)) => {
            let list = [
                (namespace.nguid != [0; 16]).then_some(Descriptor::Nguid(namespace.nguid)),
                (namespace.uuid != [0; 16]).then_some(Descriptor::Uuid(namespace.uuid)),
                Some(Descriptor::CommandSet(namespace.command_set())),
            ];
            descriptors(reply, &list.into_iter().flatten().collect::<Vec<_>>());
        }
        (cns::NAMESPACE_OF_COMMAND_SET, Some(Namespace { zones: Some(shape), .. }))
            if identify.command_set == zone::COMMAND_SET =>
        {
            reply.extend_from_slice(zoned_structure(shape).as_bytes());
        }
        (cns::NAMESPACE_OF_COMMAND_SET, Some(_)) if identify.command_set == zone::COMMAND_SET => {
            return Answer::refusal(Status::INVALID_FIELD);
        }
        (cns::NAMESPACE_DESCRIPTORS, None) => return Answer::refusal(Status::INVALID_NAMESPACE),
        // Guards have 16 bits and there are no storage tags: the structure of the command set is empty, as is one of no namespace.
        _ => reply.resize(IDENTIFY_BYTES, 0),
    }
    Answer::SUCCESS
}

fn namespace_structure(
    namespace: &Namespace,
    used: Option<u64>,
    limits: &Limits,
    format_progress: u8,
) -> Box<IdentifyNamespace> {
    let mut it = IdentifyNamespace::zeroed();
    it.format_progress = format_progress;
    it.size_blocks.set(namespace.blocks);
    let capacity = namespace.capacity_blocks();
    it.capacity_blocks.set(capacity);
    it.used_blocks.set(used.map_or(capacity, |used| used.min(capacity)));
    if used.is_some() {
        it.features |= IdentifyNamespace::THIN;
    }
    fill_formats(&mut it, &blocks_of(namespace));
    it.format = namespace.format() | if namespace.metadata.is_none() { 0 } else { IdentifyNamespace::INLINE };
    it.sharing = u8::from(!namespace.is_private);
    it.reservations = reservations_of(namespace);
    // Deallocated blocks read as zeros, with guards of ones, and Write Zeroes may deallocate; of a zone it writes.
    it.deallocation = 1 | u8::from(namespace.zones.is_none()) << 3;
    let copy = limits.copy(namespace.block_log2);
    it.copy_range_max.set(copy.range_blocks);
    it.copy_max.set(copy.blocks);
    it.copy_ranges_max = COPY_RANGES_MAX - 1;
    it.protection = namespace.metadata.kind();
    it.ana_group.set(namespace.ana_group);
    it.attributes = u8::from(namespace.is_read_only);
    it.nguid = namespace.nguid;
    // Whole units are taken of the drive.
    let unit_bytes = u128::from(namespace.hints.map_or(1, |hints| hints.unit)) << namespace.block_log2;
    let size_bytes = u128::from(namespace.blocks) << namespace.block_log2;
    it.capacity_bytes = size_bytes.next_multiple_of(unit_bytes.max(1)).to_le_bytes();
    if let Some(hints) = namespace.hints {
        it.features |= IdentifyNamespace::HINTS;
        let less_one = |blocks: u32| (blocks.clamp(1, 1 << 16) - 1) as u16;
        it.write_granularity.set(less_one(hints.granularity));
        it.write_optimal.set(less_one(hints.optimal));
        // Zero is one block.
        it.write_alignment.set(less_one(hints.unit));
        it.deallocate_granularity.set(less_one(hints.unit));
        it.deallocate_alignment.set(less_one(hints.unit));
        if hints.unit > 1 {
            // A unit gets its new place whole: what lies within one is written at once, also over a power failure.
            it.features |= IdentifyNamespace::ATOMICS;
            it.atomic_write.set(less_one(hints.unit));
            it.atomic_write_power_fail.set(less_one(hints.unit));
            it.atomic_boundary.set(less_one(hints.unit));
            it.atomic_boundary_power_fail.set(less_one(hints.unit));
        }
    }
    it
}

/// Formats of a namespace.
fn blocks_of(namespace: &Namespace) -> Vec<BlockFormat> {
    if namespace.formats.is_empty() { vec![namespace.block()] } else { namespace.formats.to_vec() }
}

/// Those that all namespaces of a subsystem may have: of the first one, where hosts create none.
fn formats_of(subsystem: &Subsystem) -> Vec<BlockFormat> {
    let first = || subsystem.namespaces.first().map(blocks_of).unwrap_or_default();
    subsystem.management.map_or_else(first, |management| management.formats.to_vec())
}

/// The formats of a namespace. Blocks that are smaller than the first ones are slower: their neighbours have to be read.
///
/// Metadata is a part of the data, the only way over fabrics; a host may format blocks with it to any type of protection
/// information. Source: \[P\] NVM Command Set 1.0, figure 97, MC and DPC.
fn fill_formats(it: &mut IdentifyNamespace, blocks: &[BlockFormat]) {
    it.formats = (blocks.len().clamp(1, it.lba_formats.len()) - 1) as u8;
    let largest = blocks.first().map(|first| first.data_log2);
    for (format, block) in it.lba_formats.iter_mut().zip(blocks) {
        let BlockFormat { data_log2, has_metadata } = *block;
        let performance = if Some(data_log2) < largest { LbaFormat::GOOD } else { LbaFormat::BEST };
        let metadata_bytes = if has_metadata { Tuple::BYTES as u16 } else { 0 };
        *format = LbaFormat { metadata_bytes: metadata_bytes.into(), data_log2, performance };
    }
    if blocks.iter().any(|block| block.has_metadata) {
        it.metadata = IdentifyNamespace::CAN_INLINE;
        it.protection_capabilities = IdentifyNamespace::PROTECTION_TYPES;
    }
}

/// Zones as the Zoned Namespace Command Set describes them. Reads may cross zones.
fn zoned_structure(shape: &ZoneShape) -> Box<IdentifyNamespaceZoned> {
    let mut it = IdentifyNamespaceZoned::zeroed();
    it.optional.set(IdentifyNamespaceZoned::READS_ACROSS);
    let less_one = |limit: u32| if limit == 0 { zone::NO_LIMIT } else { limit - 1 };
    it.active_max.set(less_one(shape.active_max));
    it.open_max.set(less_one(shape.open_limit()));
    it.formats[0].zone_blocks.set(shape.zone_blocks);
    it
}
