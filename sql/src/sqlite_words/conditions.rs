//! In SQLite, a number is a condition: it holds unless it is 0. So Perfetto's queries have `WHERE is_main_thread`. A column that
//! is a condition is cast to BOOLEAN here, which changes nothing if it has this type.

use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType, Expr, Select, UnaryOperator, Value};

use super::as_type;

/// The conditions of a SELECT.
pub(super) fn of_select(select: &mut Select) {
    let conditions = [&mut select.selection, &mut select.having, &mut select.qualify];
    conditions.into_iter().flatten().for_each(as_condition);
}

/// The conditions that an expression is made of.
pub(super) fn of_expr(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            as_condition(left);
            as_condition(right);
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } => {
            match (&**left, &**right) {
                (_, right) if is_truth(right) => as_condition(left),
                (left, _) if is_truth(left) => as_condition(right),
                _ => {}
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => as_condition(expr),
        Expr::Case { operand: None, conditions, .. } => {
            conditions.iter_mut().for_each(|when| as_condition(&mut when.condition));
        }
        _ => {}
    }
}

fn is_truth(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Boolean(_)))
}

fn as_condition(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) => as_condition(inner),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => *expr = as_type(expr.clone(), DataType::Boolean),
        _ => {}
    }
}
