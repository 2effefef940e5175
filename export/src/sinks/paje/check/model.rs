//! The types and containers that a file has defined so far, and the checks of its next event.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    FaultKind, LineFault,
    events::{Event, FieldName, Fields},
};

#[derive(Default)]
pub(super) struct Model {
    types: NamedItems<EntityType>,
    containers: NamedItems<Container>,
    /// Starts of links without an end so far, by their keys.
    links: BTreeMap<String, LinkEnd>,
    time: Option<f64>,
}

/// Items that can be found by their alias or their name.
struct NamedItems<T> {
    items: Vec<T>,
    by_name: HashMap<String, usize>,
}

impl<T> Default for NamedItems<T> {
    fn default() -> NamedItems<T> {
        NamedItems { items: Vec::new(), by_name: HashMap::new() }
    }
}

impl<T> NamedItems<T> {
    fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Adds an item with its alias and its name.
    fn add(&mut self, fields: &Fields<'_>, item: T) -> Result<(), LineFault> {
        let name = fields.need(FieldName::Name)?;
        let index = self.items.len();
        self.items.push(item);
        let alias = fields.get(FieldName::Alias).filter(|alias| *alias != name);
        for word in alias.into_iter().chain([name]) {
            if self.by_name.contains_key(word) {
                return Err((FaultKind::NameUsedTwice, format!("{word:?} is already a name or an alias")));
            }
            self.by_name.insert(word.into(), index);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TypeKind {
    Container,
    State,
    Event,
    Variable,
    /// From containers of one type to those of another.
    Link(usize, usize),
}

struct EntityType {
    kind: TypeKind,
    /// The parent container type; `None` is the root.
    parent: Option<usize>,
    values: HashSet<String>,
}

struct Container {
    alias: String,
    ty: usize,
    parent: Option<usize>,
    destroyed: bool,
    /// The stack of each state type: whether each state was pushed.
    stacks: BTreeMap<usize, Vec<bool>>,
}

struct LinkEnd {
    ty: usize,
    container: usize,
    value: String,
}

/// The root of containers and of their types.
const ROOT: &str = "0";

impl Model {
    pub(super) fn event(&mut self, event: Event, fields: &Fields<'_>) -> Result<(), LineFault> {
        // The other checks are made even if the time is wrong.
        let in_order = self.time(fields);
        match event {
            Event::DefineContainerType => self.define(fields, TypeKind::Container),
            Event::DefineStateType => self.define(fields, TypeKind::State),
            Event::DefineEventType => self.define(fields, TypeKind::Event),
            Event::DefineVariableType => self.define(fields, TypeKind::Variable),
            Event::DefineLinkType => self.define_link(fields),
            Event::DefineEntityValue => self.define_value(fields),
            Event::CreateContainer => self.create(fields),
            Event::DestroyContainer => self.destroy(fields),
            Event::SetState | Event::PushState | Event::PopState | Event::ResetState => {
                self.state(event, fields)
            }
            Event::New => self.new_event(fields),
            Event::SetVariable | Event::AddVariable | Event::SubVariable => self.variable(fields),
            Event::StartLink => self.start_link(fields),
            Event::EndLink => self.end_link(fields),
        }?;
        in_order
    }

    fn time(&mut self, fields: &Fields<'_>) -> Result<(), LineFault> {
        if fields.get(FieldName::Time).is_none() {
            return Ok(());
        }
        let now = fields.time()?;
        match self.time {
            Some(before) if now < before => {
                Err((FaultKind::TimeGoesBack, format!("expected a time from {before} on, found {now}")))
            }
            _ => {
                self.time = Some(now);
                Ok(())
            }
        }
    }

    fn find_type(&self, name: &str) -> Result<usize, LineFault> {
        self.types
            .find(name)
            .ok_or_else(|| (FaultKind::UndefinedType, format!("type {name:?} is not defined")))
    }

    /// A container type; `None` is the root.
    fn container_type(&self, name: &str) -> Result<Option<usize>, LineFault> {
        if name == ROOT {
            return Ok(None);
        }
        let ty = self.find_type(name)?;
        match self.types.items[ty].kind {
            TypeKind::Container => Ok(Some(ty)),
            kind => Err((FaultKind::WrongType, format!("{name:?} is a type of {kind:?}, not of containers"))),
        }
    }

    fn define(&mut self, fields: &Fields<'_>, kind: TypeKind) -> Result<(), LineFault> {
        let parent = self.container_type(fields.need(FieldName::Type)?)?;
        self.types.add(fields, EntityType { kind, parent, values: HashSet::new() })
    }

    fn define_link(&mut self, fields: &Fields<'_>) -> Result<(), LineFault> {
        let end = |field| {
            let name = fields.need(field)?;
            let root = || (FaultKind::WrongType, "a link cannot end at the root".to_string());
            self.container_type(name)?.ok_or_else(root)
        };
        let kind = TypeKind::Link(end(FieldName::StartContainerType)?, end(FieldName::EndContainerType)?);
        self.define(fields, kind)
    }

    fn define_value(&mut self, fields: &Fields<'_>) -> Result<(), LineFault> {
        let ty = self.find_type(fields.need(FieldName::Type)?)?;
        let name = fields.need(FieldName::Name)?;
        let values = &mut self.types.items[ty].values;
        let alias = fields.get(FieldName::Alias).filter(|alias| *alias != name);
        for word in alias.into_iter().chain([name]) {
            if !values.insert(word.into()) {
                return Err((FaultKind::NameUsedTwice, format!("the type has a value {word:?} already")));
            }
        }
        Ok(())
    }

    fn create(&mut self, fields: &Fields<'_>) -> Result<(), LineFault> {
        let name = fields.need(FieldName::Type)?;
        let Some(ty) = self.container_type(name)? else {
            return Err((FaultKind::WrongType, "a container cannot be of the root's type".into()));
        };
        let parent = match fields.need(FieldName::Container)? {
            ROOT => None,
            name => Some(self.existing(name)?),
        };
        if self.types.items[ty].parent != parent.map(|parent| self.containers.items[parent].ty) {
            return Err((
                FaultKind::WrongType,
                format!("a container of type {name:?} cannot be created in this container"),
            ));
        }
        let alias = match fields.get(FieldName::Alias) {
            Some(alias) => alias,
            None => fields.need(FieldName::Name)?,
        };
        let stacks = BTreeMap::new();
        let container = Container { alias: alias.into(), ty, parent, destroyed: false, stacks };
        self.containers.add(fields, container)
    }

    /// A container that was created and not destroyed.
    fn existing(&self, name: &str) -> Result<usize, LineFault> {
        let wrong = |what| (FaultKind::UndefinedContainer, format!("container {name:?} {what}"));
        let found = self.containers.find(name).ok_or_else(|| wrong("was not created"))?;
        if self.containers.items[found].destroyed { Err(wrong("is destroyed")) } else { Ok(found) }
    }

    fn destroy(&mut self, fields: &Fields<'_>) -> Result<(), LineFault> {
        let found = self.existing(fields.need(FieldName::Name)?)?;
        let ty = self.container_type(fields.need(FieldName::Type)?)?;
        let container = &mut self.containers.items[found];
        container.destroyed = true;
        let pushed = std::mem::take(&mut container.stacks).into_values().flatten().filter(|p| *p).count();
        if ty != Some(container.ty) {
            return Err((
                FaultKind::WrongType,
                format!("{:?} is not a container of that type", container.alias),
            ));
        }
        if pushed > 0 {
            let what = format!("{pushed} states of {:?} were pushed and not popped", container.alias);
            return Err((FaultKind::NotPopped, what));
        }
        Ok(())
    }

    /// The type and the container of an event, if they match.
    fn type_and_container(
        &self,
        fields: &Fields<'_>,
        fits: impl Fn(TypeKind) -> bool,
    ) -> Result<(usize, usize), LineFault> {
        let name = fields.need(FieldName::Type)?;
        let ty = self.find_type(name)?;
        let container = self.existing(fields.need(FieldName::Container)?)?;
        let EntityType { kind, parent, .. } = self.types.items[ty];
        if !fits(kind) {
            return Err((FaultKind::WrongType, format!("{name:?} is a type of {kind:?}")));
        }
        let Container { alias, ty: of, .. } = &self.containers.items[container];
        if parent != Some(*of) {
            return Err((
                FaultKind::WrongType,
                format!("type {name:?} does not belong to the container type of {alias:?}"),
            ));
        }
        Ok((ty, container))
    }

    fn value<'a>(&self, ty: usize, fields: &Fields<'a>) -> Result<&'a str, LineFault> {
        let value = fields.need(FieldName::Value)?;
        if self.types.items[ty].values.contains(value) {
            return Ok(value);
        }
        Err((FaultKind::UndeclaredValue, format!("the type has no value {value:?}")))
    }

    fn state(&mut self, event: Event, fields: &Fields<'_>) -> Result<(), LineFault> {
        let (ty, container) = self.type_and_container(fields, |kind| kind == TypeKind::State)?;
        let with_value = matches!(event, Event::SetState | Event::PushState);
        let declared = if with_value { self.value(ty, fields).map(|_| ()) } else { Ok(()) };
        let stack = self.containers.items[container].stacks.entry(ty).or_default();
        match event {
            Event::PushState => stack.push(true),
            Event::PopState if stack.pop().is_none() => {
                return Err((FaultKind::NothingToPop, "the container has no state of this type".into()));
            }
            Event::PopState => {}
            Event::SetState => *stack = vec![false],
            _ => stack.clear(),
        }
        declared
    }

    fn new_event(&mut self, fields: &Fields<'_>) -> Result<(), LineFault> {
        let (ty, _) = self.type_and_container(fields, |kind| kind == TypeKind::Event)?;
        self.value(ty, fields).map(|_| ())
    }

    fn variable(&mut self, fields: &Fields<'_>) -> Result<(), LineFault> {
        self.type_and_container(fields, |kind| kind == TypeKind::Variable)?;
        let value = fields.need(FieldName::Value)?;
        match value.parse::<f64>() {
            Ok(_) => Ok(()),
            Err(_) => Err((FaultKind::Fields, format!("expected a number, found {value:?}"))),
        }
    }

    /// One end of a link: the link's key, and what both ends must have in common.
    fn link_end(&self, fields: &Fields<'_>, end: FieldName) -> Result<(String, LinkEnd), LineFault> {
        let (ty, container) = self.type_and_container(fields, |kind| matches!(kind, TypeKind::Link(..)))?;
        let value = self.value(ty, fields)?.to_string();
        let name = fields.need(end)?;
        let at = self.existing(name)?;
        let of = self.containers.items[at].ty;
        let expected = match (self.types.items[ty].kind, end) {
            (TypeKind::Link(start, _), FieldName::StartContainer) => start,
            (TypeKind::Link(_, end), _) => end,
            _ => of,
        };
        if of != expected || !self.is_inside(at, container) {
            return Err((FaultKind::WrongType, format!("this link cannot be at {name:?}")));
        }
        Ok((fields.need(FieldName::Key)?.to_string(), LinkEnd { ty, container, value }))
    }

    fn is_inside(&self, inner: usize, outer: usize) -> bool {
        let mut at = Some(inner);
        while let Some(container) = at {
            if container == outer {
                return true;
            }
            at = self.containers.items[container].parent;
        }
        false
    }

    fn start_link(&mut self, fields: &Fields<'_>) -> Result<(), LineFault> {
        let (key, end) = self.link_end(fields, FieldName::StartContainer)?;
        match self.links.insert(key, end) {
            None => Ok(()),
            Some(_) => Err((FaultKind::LinkNotPaired, "a link with this key has already started".into())),
        }
    }

    fn end_link(&mut self, fields: &Fields<'_>) -> Result<(), LineFault> {
        let (key, end) = self.link_end(fields, FieldName::EndContainer)?;
        let wrong = |what: &str| Err((FaultKind::LinkNotPaired, format!("link {key:?} {what}")));
        match self.links.remove(&key) {
            None => wrong("has not started"),
            Some(start) if start.ty != end.ty => wrong("started with another type"),
            Some(start) if start.container != end.container => wrong("started in another container"),
            Some(start) if start.value != end.value => wrong("started with another value"),
            Some(_) => Ok(()),
        }
    }

    /// Elements missing at the end of the file.
    pub(super) fn missing(&self) -> Vec<LineFault> {
        let existing = self.containers.items.iter().filter(|container| !container.destroyed);
        let existing = existing.map(|container| {
            (FaultKind::NotDestroyed, format!("container {:?} is not destroyed", container.alias))
        });
        let open =
            self.links.keys().map(|key| (FaultKind::LinkNotPaired, format!("link {key:?} has no end")));
        existing.chain(open).collect()
    }
}
