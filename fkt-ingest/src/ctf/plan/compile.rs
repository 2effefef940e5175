//! Compiles declared types to steps.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sigmund_model::{Field, FieldType};

use super::super::metadata::{self, Array, Enum, Integer, Labels, Length, Order, Struct, Type, Variant};
use super::scope::{Binding, Bindings, FieldScope, find};
use super::{Count, FIRST_REGISTER, Float, List, Number, Op, OptionPlan, Register, Shape, VariantPlan};

/// An array of at most this many numbers becomes one parameter per number.
const MAX_SPREAD: u64 = 8;
/// Largest number of fields of one event, including contexts.
const MAX_FIELDS: u32 = 4096;
/// Largest length of a field's name, including those of its enclosing structures.
const MAX_NAME: usize = 1024;

/// Limits for all plans of a trace together: a few lines of text can declare 2^24 fields.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) steps: u32,
    pub(crate) name_bytes: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { steps: 1 << 17, name_bytes: 8 << 20 }
    }
}

/// Compiles the plans of one stream, scope after scope.
#[derive(Clone, Debug)]
pub(crate) struct Compiler<'a> {
    order: Order,
    wanted: &'a HashSet<Arc<str>>,
    scope: FieldScope,
    /// Compiled scopes.
    done: Vec<(FieldScope, Arc<Bindings>)>,
    /// Open structures, innermost last.
    open: Vec<Bindings>,
    next_register: Register,
    fields_left: u32,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(order: Order, wanted: &'a HashSet<Arc<str>>) -> Compiler<'a> {
        Compiler {
            order,
            wanted,
            scope: FieldScope::PacketHeader,
            done: Vec::new(),
            open: Vec::new(),
            next_register: FIRST_REGISTER,
            fields_left: MAX_FIELDS,
        }
    }

    /// The number of registers that the plans so far need.
    pub(crate) fn registers(&self) -> usize {
        usize::from(self.next_register)
    }

    /// Adds the steps of a scope to `ops`, and its parameters to `fields`.
    ///
    /// # Errors
    /// A description of what is wrong with the declaration.
    pub(crate) fn scope(
        &mut self,
        scope: FieldScope,
        ty: Option<&Type>,
        budget: &mut Budget,
        ops: &mut Vec<Op>,
        fields: &mut Vec<Field>,
    ) -> Result<(), String> {
        let Some(ty) = ty else { return Ok(()) };
        let Type::Struct(ty) = ty else { return Err(format!("{}: not a structure", scope.path().join("."))) };
        self.scope = scope;
        let mut part = Part { compiler: self, budget, fields, in_list: false };
        let bindings = part.structure(ty, "", ops)?;
        self.done.push((scope, Arc::new(bindings)));
        Ok(())
    }

    /// The register of a number directly in `scope`.
    pub(crate) fn register(&self, scope: FieldScope, name: &str) -> Option<Register> {
        let (_, bindings) = self.done.iter().find(|(done, _)| *done == scope)?;
        match find(bindings, &[Arc::from(name)])? {
            Binding::Number { register, .. } => Some(*register),
            Binding::Group(_) => None,
        }
    }

    fn lookup(&self, path: &metadata::Path) -> Result<&Binding, String> {
        let open = self.open.first().map(|outermost| (self.scope, outermost));
        let scopes = || self.done.iter().map(|(scope, bindings)| (*scope, &**bindings)).chain(open).rev();
        let absolute = scopes().find_map(|(scope, bindings)| {
            let head = scope.path();
            let matches = path.len() > head.len() && head.iter().zip(path).all(|(a, b)| **a == **b);
            matches.then(|| find(bindings, &path[head.len()..]))?
        });
        let relative = || {
            let inner = self.open.iter().rev();
            inner.chain(scopes().map(|(_, bindings)| bindings)).find_map(|bindings| find(bindings, path))
        };
        absolute.or_else(relative).ok_or_else(|| {
            let path: Vec<&str> = path.iter().map(|part| &**part).collect();
            format!("no field {:?} before the one that refers to it", path.join("."))
        })
    }
}

/// One scope while it is compiled.
struct Part<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    budget: &'c mut Budget,
    fields: &'c mut Vec<Field>,
    /// Whether it is an element of a list, whose fields are not parameters.
    in_list: bool,
}

impl Part<'_, '_> {
    fn structure(&mut self, ty: &Struct, prefix: &str, ops: &mut Vec<Op>) -> Result<Bindings, String> {
        let first = ty.fields.first().map_or(1, |(_, ty)| ty.align());
        if ty.align > first {
            ops.push(Op::Align(ty.align - 1));
        }
        self.compiler.open.push(Bindings::new());
        for (name, ty) in &ty.fields {
            if let Some(binding) = self.field(name, ty, prefix, ops)?
                && let Some(open) = self.compiler.open.last_mut()
            {
                open.push((Arc::clone(name), binding));
            }
        }
        Ok(self.compiler.open.pop().unwrap_or_default())
    }

    /// A field, or an option of a variant.
    fn field(
        &mut self,
        name: &Arc<str>,
        ty: &Type,
        prefix: &str,
        ops: &mut Vec<Op>,
    ) -> Result<Option<Binding>, String> {
        let shown = name.strip_prefix('_').unwrap_or(name);
        let path = if prefix.is_empty() { shown.to_owned() } else { format!("{prefix}.{shown}") };
        self.take(&path)?;
        Ok(match ty {
            Type::Integer(integer) => self.number(name, integer, None, path, ops),
            Type::Enum(ty) => self.number(name, &ty.container, Some(ty), path, ops),
            Type::Float(float) => {
                ops.push(Op::Float(self.float(float)));
                self.push(path, FieldType::F64);
                None
            }
            Type::Text => {
                ops.push(Op::Text);
                self.push(path, FieldType::Text);
                None
            }
            Type::Struct(ty) => Some(Binding::Group(self.structure(ty, &path, ops)?)),
            Type::Variant(ty) => Some(Binding::Group(self.variant(ty, &path, ops)?)),
            Type::Array(array) => {
                self.array(name, array, path, ops)?;
                None
            }
        })
    }

    /// Counts a field against the limits.
    fn take(&mut self, path: &str) -> Result<(), String> {
        if path.len() > MAX_NAME {
            return Err(format!("a name of more than {MAX_NAME} characters"));
        }
        let event = self.compiler.fields_left.checked_sub(1);
        self.compiler.fields_left = event.ok_or_else(|| format!("more than {MAX_FIELDS} fields"))?;
        let all = (self.budget.steps.checked_sub(1), self.budget.name_bytes.checked_sub(path.len()));
        let (Some(steps), Some(name_bytes)) = all else {
            return Err("more fields than the limit for a trace".to_owned());
        };
        (self.budget.steps, self.budget.name_bytes) = (steps, name_bytes);
        Ok(())
    }

    fn push(&mut self, name: String, ty: FieldType) {
        self.fields.push(Field { name, ty });
    }

    fn number(
        &mut self,
        name: &Arc<str>,
        integer: &Integer,
        ty: Option<&Arc<Enum>>,
        path: String,
        ops: &mut Vec<Op>,
    ) -> Option<Binding> {
        let keep = self.register_for(name);
        let mut number = self.plain(integer, ty);
        number.keep = keep;
        if self.compiler.scope == FieldScope::EventHeader {
            // Its name is never used.
            number.labels = None;
        }
        let is_time = integer.clock.is_some() || &**name == "timestamp";
        if is_time && self.compiler.scope == FieldScope::EventHeader {
            ops.push(Op::Clock(number));
        } else {
            ops.push(Op::Number(number));
        }
        self.push(path, field_type(integer));
        (keep != 0).then(|| Binding::Number { register: keep, ty: ty.cloned() })
    }

    /// The register for a value; 0 if it is not needed.
    fn register_for(&mut self, name: &Arc<str>) -> Register {
        let compiler = &mut *self.compiler;
        let is_id = compiler.scope == FieldScope::EventHeader && &**name == "id";
        let is_packet = matches!(compiler.scope, FieldScope::PacketHeader | FieldScope::PacketContext);
        if is_id {
            return super::EVENT_ID;
        }
        if !is_packet && !compiler.wanted.contains(name) {
            return 0;
        }
        let register = compiler.next_register;
        compiler.next_register = register.saturating_add(1);
        register
    }

    fn plain(&self, integer: &Integer, ty: Option<&Arc<Enum>>) -> Number {
        let order = integer.order.unwrap_or(self.compiler.order);
        let shape = match (integer.size, order) {
            _ if !integer.align.is_multiple_of(8) => Shape::Bits,
            (8, _) => Shape::Byte,
            (16, Order::Little) => Shape::Little16,
            (32, Order::Little) => Shape::Little32,
            (64, Order::Little) => Shape::Little64,
            (16, Order::Big) => Shape::Big16,
            (32, Order::Big) => Shape::Big32,
            (64, Order::Big) => Shape::Big64,
            _ => Shape::Bits,
        };
        Number {
            shape,
            order,
            size: integer.size,
            extend: if integer.signed { 64 - integer.size } else { 0 },
            signed: integer.signed,
            align: integer.align - 1,
            keep: 0,
            labels: ty.map(|ty| Arc::clone(&ty.labels)),
        }
    }

    fn float(&self, float: &metadata::Float) -> Float {
        let order = float.order.unwrap_or(self.compiler.order);
        Float { is_double: float.size == 64, order, align: float.align - 1 }
    }

    fn array(
        &mut self,
        name: &Arc<str>,
        array: &Array,
        path: String,
        ops: &mut Vec<Op>,
    ) -> Result<(), String> {
        let in_header = self.compiler.scope == FieldScope::PacketHeader;
        let align = array.element.align() - 1;
        match (&array.element, &array.length) {
            (Type::Integer(byte), Length::Fixed(16)) if in_header && &**name == "uuid" && byte.size == 8 => {
                ops.push(Op::Uuid);
            }
            (Type::Integer(byte), length)
                if byte.size == 8 && byte.is_text && byte.align.is_multiple_of(8) =>
            {
                let count = self.count(length)?;
                ops.push(Op::Chars { align, count });
                self.push(path, FieldType::Text);
            }
            (element @ (Type::Integer(_) | Type::Enum(_) | Type::Float(_)), Length::Fixed(count))
                if *count <= MAX_SPREAD && !self.in_list =>
            {
                for index in 0..*count {
                    self.take(&path)?;
                    let (op, ty) = self.scalar(element);
                    ops.push(op);
                    self.push(format!("{path}{index}"), ty);
                }
            }
            (element, length) => {
                let count = self.count(length)?;
                let (element, braces) = self.element(element)?;
                ops.push(Op::List(Box::new(List { align, count, element, braces })));
                self.push(path, FieldType::Text);
            }
        }
        Ok(())
    }

    fn scalar(&self, ty: &Type) -> (Op, FieldType) {
        match ty {
            Type::Integer(integer) => (Op::Number(self.plain(integer, None)), field_type(integer)),
            Type::Enum(ty) => (Op::Number(self.plain(&ty.container, Some(ty))), field_type(&ty.container)),
            Type::Float(float) => (Op::Float(self.float(float)), FieldType::F64),
            _ => (Op::Text, FieldType::Text),
        }
    }

    /// The steps of one element of a list, and whether it is a structure. Its fields are not parameters.
    fn element(&mut self, ty: &Type) -> Result<(Vec<Op>, bool), String> {
        let mut ops = Vec::new();
        let mut fields = Vec::new();
        let mut part =
            Part { compiler: self.compiler, budget: self.budget, fields: &mut fields, in_list: true };
        match ty {
            Type::Struct(ty) => {
                part.structure(ty, "", &mut ops)?;
                return Ok((ops, true));
            }
            ty => part.field(&Arc::from("element"), ty, "", &mut ops)?,
        };
        Ok((ops, false))
    }

    fn count(&self, length: &Length) -> Result<Count, String> {
        let path = match length {
            Length::Fixed(count) => return Ok(Count::Fixed(*count)),
            Length::By(path) => path,
        };
        match self.compiler.lookup(path)? {
            Binding::Number { register, .. } => Ok(Count::In(*register)),
            Binding::Group(_) => Err("a length that is not a number".to_owned()),
        }
    }

    fn variant(&mut self, ty: &Variant, path: &str, ops: &mut Vec<Op>) -> Result<Bindings, String> {
        let tag = ty.tag.as_ref().ok_or("a variant without a tag")?;
        let Binding::Number { register, ty: Some(tag) } = self.compiler.lookup(tag)?.clone() else {
            return Err("a variant whose tag is not an enumeration".to_owned());
        };
        // LTTng may write `_` before the name of an option, while the label has none.
        let plain = ty.options.iter().enumerate().map(|(at, (name, _))| (&**name, at));
        let mut named: HashMap<&str, usize> =
            plain.clone().filter_map(|(name, at)| Some((name.strip_prefix('_')?, at))).collect();
        named.extend(plain);
        let mappings = tag.mappings.iter();
        let (chosen, ranges): (Vec<usize>, Vec<_>) = mappings
            .filter_map(|m| Some((*named.get(&*m.label)?, (Arc::clone(&m.label), m.low, m.high))))
            .unzip();
        let first = self.fields.len();
        let mut options = Vec::with_capacity(ty.options.len());
        self.compiler.open.push(Bindings::new());
        for (name, ty) in &ty.options {
            let before = self.fields.len() - first;
            let mut option = Vec::new();
            if let Some(binding) = self.field(name, ty, path, &mut option)?
                && let Some(open) = self.compiler.open.last_mut()
            {
                open.push((Arc::clone(name), binding));
            }
            options.push(OptionPlan { ops: option, before, own: self.fields.len() - first - before });
        }
        let parameters = self.fields.len() - first;
        let ranges = Labels::new(tag.container.signed, ranges);
        let plan = VariantPlan { tag: register, ranges, chosen, options, parameters };
        ops.push(Op::Variant(Box::new(plan)));
        Ok(self.compiler.open.pop().unwrap_or_default())
    }
}

fn field_type(integer: &Integer) -> FieldType {
    match (integer.size, integer.signed) {
        (_, true) => FieldType::I64,
        (1, _) => FieldType::Bool,
        (..=8, _) => FieldType::U8,
        (..=16, _) => FieldType::U16,
        (..=32, _) => FieldType::U32,
        (64, _) if integer.base == 16 => FieldType::Pointer,
        _ => FieldType::U64,
    }
}
