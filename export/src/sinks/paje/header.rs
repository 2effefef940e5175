//! The first part of a file: the declarations of events and their fields.
//!
//! ```text
//!   %EventDef PajeSetState 8
//!   %       Time date
//!   %       Type string
//!   %       Container string
//!   %       Value string
//!   %EndEventDef
//! ```
//!
//! An event may be declared more than once, with other fields and another number.

/// The numbers of declarations, with which each line of the second part begins.
pub(super) mod event {
    pub(in crate::sinks::paje) const CONTAINER_TYPE: &str = "0";
    pub(in crate::sinks::paje) const STATE_TYPE: &str = "1";
    pub(in crate::sinks::paje) const EVENT_TYPE: &str = "2";
    pub(in crate::sinks::paje) const VARIABLE_TYPE: &str = "3";
    pub(in crate::sinks::paje) const LINK_TYPE: &str = "4";
    pub(in crate::sinks::paje) const VALUE: &str = "5";
    pub(in crate::sinks::paje) const CREATE: &str = "6";
    pub(in crate::sinks::paje) const DESTROY: &str = "7";
    pub(in crate::sinks::paje) const SET: &str = "8";
    pub(in crate::sinks::paje) const PUSH: &str = "9";
    pub(in crate::sinks::paje) const POP: &str = "10";
    pub(in crate::sinks::paje) const EVENT: &str = "11";
    pub(in crate::sinks::paje) const VARIABLE: &str = "12";
    pub(in crate::sinks::paje) const START_LINK: &str = "13";
    pub(in crate::sinks::paje) const END_LINK: &str = "14";
    /// The same with an additional field.
    pub(in crate::sinks::paje) const SET_WAITING: &str = "15";
    pub(in crate::sinks::paje) const PUSH_NAMED: &str = "16";
    pub(in crate::sinks::paje) const EVENT_WITH_PARAMETERS: &str = "17";
}

/// The first part of a file. Names are those of Pajé 1.3.
pub(super) const HEADER: &str = "\
%EventDef PajeDefineContainerType 0\n%\tAlias string\n%\tType string\n%\tName string\n%EndEventDef\n\
%EventDef PajeDefineStateType 1\n%\tAlias string\n%\tType string\n%\tName string\n%EndEventDef\n\
%EventDef PajeDefineEventType 2\n%\tAlias string\n%\tType string\n%\tName string\n%EndEventDef\n\
%EventDef PajeDefineVariableType 3\n%\tAlias string\n%\tType string\n%\tName string\n%\tColor color\n\
%EndEventDef\n\
%EventDef PajeDefineLinkType 4\n%\tAlias string\n%\tType string\n%\tStartContainerType string\n\
%\tEndContainerType string\n%\tName string\n%EndEventDef\n\
%EventDef PajeDefineEntityValue 5\n%\tAlias string\n%\tType string\n%\tName string\n%\tColor color\n\
%EndEventDef\n\
%EventDef PajeCreateContainer 6\n%\tTime date\n%\tAlias string\n%\tType string\n%\tContainer string\n\
%\tName string\n%EndEventDef\n\
%EventDef PajeDestroyContainer 7\n%\tTime date\n%\tType string\n%\tName string\n%EndEventDef\n\
%EventDef PajeSetState 8\n%\tTime date\n%\tType string\n%\tContainer string\n%\tValue string\n%EndEventDef\n\
%EventDef PajePushState 9\n%\tTime date\n%\tType string\n%\tContainer string\n%\tValue string\n%EndEventDef\n\
%EventDef PajePopState 10\n%\tTime date\n%\tType string\n%\tContainer string\n%EndEventDef\n\
%EventDef PajeNewEvent 11\n%\tTime date\n%\tType string\n%\tContainer string\n%\tValue string\n%EndEventDef\n\
%EventDef PajeSetVariable 12\n%\tTime date\n%\tType string\n%\tContainer string\n%\tValue double\n\
%EndEventDef\n\
%EventDef PajeStartLink 13\n%\tTime date\n%\tType string\n%\tContainer string\n%\tStartContainer string\n\
%\tValue string\n%\tKey string\n%EndEventDef\n\
%EventDef PajeEndLink 14\n%\tTime date\n%\tType string\n%\tContainer string\n%\tEndContainer string\n\
%\tValue string\n%\tKey string\n%EndEventDef\n\
%EventDef PajeSetState 15\n%\tTime date\n%\tType string\n%\tContainer string\n%\tValue string\n\
%\tWaitsFor string\n%EndEventDef\n\
%EventDef PajePushState 16\n%\tTime date\n%\tType string\n%\tContainer string\n%\tValue string\n\
%\tSliceName string\n%EndEventDef\n\
%EventDef PajeNewEvent 17\n%\tTime date\n%\tType string\n%\tContainer string\n%\tValue string\n\
%\tParameters string\n%EndEventDef\n";
