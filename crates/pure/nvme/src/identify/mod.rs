//! Data structures of Identify.

mod controller;
mod lists;
mod namespace;

pub use controller::{IdentifyController, IdentifyControllerNvm, PowerState};
pub use lists::{
    Descriptor, command_sets, controller_list, descriptors, namespace_list, read_controllers, read_descriptors,
    read_list,
};
pub use namespace::{IdentifyNamespace, IdentifyNamespaceIndependent, IdentifyNamespaceNvm, LbaFormat};
