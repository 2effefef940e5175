//! The LU factorisation of a sparse matrix of blocks, with a user thread for each block and phase: SparseLU of the
//! Barcelona OpenMP Tasks Suite (Duran et al., ICPP 2009), whose pattern of empty blocks this keeps.
//!
//! ```text
//! step k, and its user threads                k
//!                                           ┌───┬───┬───┐
//!   lu0   the diagonal block, first       k │lu0│fwd│fwd│
//!   fwd   its row, bdiv its column, then    ├───┼───┼───┤
//!   bmod  what is below and to the right    │bdv│bmd│bmd│   bmd -= bdv × fwd
//!                                           └───┴───┴───┘
//! ```
//! Each phase ends when all its threads are joined. So the same operations are applied to each block in the same order
//! with any schedule, and the result is bitwise identical.

use std::sync::Arc;

use fut::JoinHandle;

fut::events! {
    /// Factorising the diagonal block of step `k` begins, and ends.
    fn lu0_begin(k: u32) => "step {k}";
    fn lu0_end(k: u32) => "step {k}";
    /// The triangular solve of a block of row `k` begins, and ends.
    fn fwd_begin(k: u32, column: u32) => "step {k}, column {column}";
    fn fwd_end(k: u32, column: u32) => "step {k}, column {column}";
    /// A block of column `k` is divided by the diagonal block.
    fn bdiv_begin(k: u32, row: u32) => "step {k}, row {row}";
    fn bdiv_end(k: u32, row: u32) => "step {k}, row {row}";
    /// The product of two blocks is subtracted from a third one.
    fn bmod_begin(k: u32, row: u32, column: u32) => "step {k}, row {row}, column {column}";
    fn bmod_end(k: u32, row: u32, column: u32) => "step {k}, row {row}, column {column}";
}

/// A sparse matrix. After its factorisation it holds both triangles, without the unit diagonal of L.
pub(crate) struct Matrix {
    /// Number of blocks in each dimension.
    blocks: usize,
    /// Numbers in a block, in each dimension.
    size: usize,
    /// Row by row; `None` is a block of zeros. A block that is being changed has no other owner.
    content: Vec<Option<Arc<Block>>>,
}

/// The numbers of a block, row by row.
type Block = Vec<f64>;

impl Matrix {
    /// Always the same matrix, with the sparsity of the suite's, and diagonally dominant, so that it needs no pivoting.
    pub(crate) fn new(blocks: usize, size: usize) -> Matrix {
        let mut random = 1_325_u64;
        let mut number = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // 53 bits, scaled to the range -2 to 2.
            (random >> 11) as f64 / (1_u64 << 51) as f64 - 2.0
        };
        let mut block = |row: usize, column: usize| {
            let mut block: Block = (0..size * size).map(|_| number()).collect();
            if row == column {
                block.iter_mut().step_by(size + 1).for_each(|heavy| *heavy += 4.0 * (blocks * size) as f64);
            }
            Arc::new(block)
        };
        let places = (0..blocks * blocks).map(|place| (place / blocks, place % blocks));
        let content = places.map(|(row, column)| is_there(row, column).then(|| block(row, column)));
        Matrix { blocks, size, content: content.collect() }
    }

    /// Factorises it. Called by a user thread, which creates the others and waits for them.
    pub(crate) fn factorise(&mut self) {
        for k in 0..self.blocks {
            let (size, step) = (self.size, k as u32);
            let diagonal = self.take(k, k);
            let spawned = fut::spawn(move || {
                lu0_begin(step);
                let factorised = changed(diagonal, |block| lu0(size, block));
                lu0_end(step);
                factorised
            });
            let diagonal = self.put_back(k, k, spawned);

            let row = self.later(k, |this, column| this.is_there(k, column));
            let column = self.later(k, |this, row| this.is_there(row, k));
            let fwds: Vec<_> = row.iter().map(|&column| self.spawn_fwd(k, column, &diagonal)).collect();
            let bdivs: Vec<_> = column.iter().map(|&row| self.spawn_bdiv(k, row, &diagonal)).collect();
            row.iter().zip(fwds).for_each(|(&column, fwd)| _ = self.put_back(k, column, fwd));
            column.iter().zip(bdivs).for_each(|(&row, bdiv)| _ = self.put_back(row, k, bdiv));

            let products = column.iter().flat_map(|&row_of| row.iter().map(move |&column| (row_of, column)));
            let products: Vec<_> = products.collect();
            let bmods: Vec<_> =
                products.iter().map(|&(row, column)| self.spawn_bmod(k, row, column)).collect();
            products.iter().zip(bmods).for_each(|(&(r, c), bmod)| _ = self.put_back(r, c, bmod));
        }
    }

    /// Factorises it without threads.
    pub(crate) fn factorise_alone(&mut self) {
        for k in 0..self.blocks {
            let size = self.size;
            let diagonal = self.change(k, k, |block| lu0(size, block));
            let row = self.later(k, |this, column| this.is_there(k, column));
            let column = self.later(k, |this, row| this.is_there(row, k));
            row.iter().for_each(|&column| _ = self.change(k, column, |block| fwd(size, &diagonal, block)));
            column.iter().for_each(|&row| _ = self.change(row, k, |block| bdiv(size, &diagonal, block)));
            for &row_of in &column {
                for &column in &row {
                    let (left, above) = (self.shared(row_of, k), self.shared(k, column));
                    self.change(row_of, column, |block| bmod(size, &left, &above, block));
                }
            }
        }
    }

    fn spawn_fwd(&mut self, k: usize, column: usize, diagonal: &Arc<Block>) -> JoinHandle<Arc<Block>> {
        let (block, diagonal, size) = (self.take(k, column), Arc::clone(diagonal), self.size);
        fut::spawn(move || {
            fwd_begin(k as u32, column as u32);
            let done = changed(block, |block| fwd(size, &diagonal, block));
            fwd_end(k as u32, column as u32);
            done
        })
    }

    fn spawn_bdiv(&mut self, k: usize, row: usize, diagonal: &Arc<Block>) -> JoinHandle<Arc<Block>> {
        let (block, diagonal, size) = (self.take(row, k), Arc::clone(diagonal), self.size);
        fut::spawn(move || {
            bdiv_begin(k as u32, row as u32);
            let done = changed(block, |block| bdiv(size, &diagonal, block));
            bdiv_end(k as u32, row as u32);
            done
        })
    }

    fn spawn_bmod(&mut self, k: usize, row: usize, column: usize) -> JoinHandle<Arc<Block>> {
        let (left, above) = (self.shared(row, k), self.shared(k, column));
        let (block, size) = (self.take(row, column), self.size);
        fut::spawn(move || {
            bmod_begin(k as u32, row as u32, column as u32);
            let done = changed(block, |block| bmod(size, &left, &above, block));
            bmod_end(k as u32, row as u32, column as u32);
            done
        })
    }

    /// The indices after `k` for which `satisfies` is true.
    fn later(&self, k: usize, satisfies: impl Fn(&Matrix, usize) -> bool) -> Vec<usize> {
        (k + 1..self.blocks).filter(|&place| satisfies(self, place)).collect()
    }

    fn is_there(&self, row: usize, column: usize) -> bool {
        self.content[row * self.blocks + column].is_some()
    }

    /// A block for reading.
    fn shared(&self, row: usize, column: usize) -> Arc<Block> {
        self.content[row * self.blocks + column].clone().expect("a block that is not of zeros")
    }

    /// A block for changing; created if it was zero.
    fn take(&mut self, row: usize, column: usize) -> Arc<Block> {
        let block = self.content[row * self.blocks + column].take();
        block.unwrap_or_else(|| Arc::new(vec![0.0; self.size * self.size]))
    }

    fn put_back(&mut self, row: usize, column: usize, thread: JoinHandle<Arc<Block>>) -> Arc<Block> {
        let block = thread.join().expect("a block's thread panicked");
        Arc::clone(self.content[row * self.blocks + column].insert(block))
    }

    fn change(&mut self, row: usize, column: usize, change: impl FnOnce(&mut Block)) -> Arc<Block> {
        let block = changed(self.take(row, column), change);
        Arc::clone(self.content[row * self.blocks + column].insert(block))
    }
}

/// Bitwise equality.
impl PartialEq for Matrix {
    fn eq(&self, other: &Matrix) -> bool {
        let bits = |block: &Option<Arc<Block>>| -> Option<Vec<u64>> {
            block.as_ref().map(|block| block.iter().map(|number| number.to_bits()).collect())
        };
        self.content.len() == other.content.len()
            && self.content.iter().zip(&other.content).all(|(ours, theirs)| bits(ours) == bits(theirs))
    }
}

/// Whether a block of the suite's matrix is not zero.
fn is_there(row: usize, column: usize) -> bool {
    let sparse = (row < column && !row.is_multiple_of(3)) || (row > column && !column.is_multiple_of(3));
    row.abs_diff(column) <= 1 || !(sparse || row % 2 == 1 || column % 2 == 1)
}

fn changed(mut block: Arc<Block>, change: impl FnOnce(&mut Block)) -> Arc<Block> {
    change(Arc::get_mut(&mut block).expect("a block that is changed has one owner"));
    block
}

/// Factorises `block` in place into both triangles.
fn lu0(size: usize, block: &mut Block) {
    for k in 0..size {
        let (above, below) = block.split_at_mut((k + 1) * size);
        let pivot_row = &above[k * size..];
        for row in below.chunks_exact_mut(size) {
            row[k] /= pivot_row[k];
            let factor = row[k];
            take_off(&mut row[k + 1..], factor, &pivot_row[k + 1..]);
        }
    }
}

/// Solves `L × new = block`; L is the lower triangle of `diagonal`.
fn fwd(size: usize, diagonal: &Block, block: &mut Block) {
    for k in 0..size {
        let (above, below) = block.split_at_mut((k + 1) * size);
        for (row, below) in (k + 1..size).zip(below.chunks_exact_mut(size)) {
            take_off(below, diagonal[row * size + k], &above[k * size..]);
        }
    }
}

/// Solves `new × U = block`; U is the upper triangle of `diagonal`.
fn bdiv(size: usize, diagonal: &Block, block: &mut Block) {
    for row in block.chunks_exact_mut(size) {
        for k in 0..size {
            row[k] /= diagonal[k * size + k];
            let factor = row[k];
            take_off(&mut row[k + 1..], factor, &diagonal[k * size + k + 1..(k + 1) * size]);
        }
    }
}

/// `block -= left × above`.
fn bmod(size: usize, left: &Block, above: &Block, block: &mut Block) {
    for (row, factors) in block.chunks_exact_mut(size).zip(left.chunks_exact(size)) {
        for (factor, above) in factors.iter().zip(above.chunks_exact(size)) {
            take_off(row, *factor, above);
        }
    }
}

/// `from -= factor × what`.
#[inline]
fn take_off(from: &mut [f64], factor: f64, what: &[f64]) {
    from.iter_mut().zip(what).for_each(|(number, what)| *number -= factor * what);
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Matrix {
        fn number(&self, row: usize, column: usize) -> f64 {
            let (size, blocks) = (self.size, self.blocks);
            let block = &self.content[row / size * blocks + column / size];
            block.as_ref().map_or(0.0, |block| block[row % size * size + column % size])
        }

        /// Row `row`, column `column` of L × U.
        fn product(&self, row: usize, column: usize) -> f64 {
            let lower = |k| if k == row { 1.0 } else { self.number(row, k) };
            (0..=row.min(column)).map(|k| lower(k) * self.number(k, column)).sum()
        }
    }

    #[test]
    fn the_product_of_the_triangles_is_the_matrix() {
        let (original, mut factorised) = (Matrix::new(7, 5), Matrix::new(7, 5));
        factorised.factorise_alone();
        for (row, column) in (0..35 * 35).map(|place| (place / 35, place % 35)) {
            let difference = factorised.product(row, column) - original.number(row, column);
            assert!(difference.abs() < 1e-9, "row {row}, column {column}: {difference}");
        }
    }

    #[test]
    fn threads_find_the_same_as_one_alone() {
        let (mut threaded, mut alone) = (Matrix::new(12, 4), Matrix::new(12, 4));
        alone.factorise_alone();
        assert!(threaded != alone);
        let runtime = fut::Runtime::builder().lwps(3).build().unwrap();
        let threaded = runtime.run(move || {
            threaded.factorise();
            threaded
        });
        assert!(threaded == alone);
    }
}
