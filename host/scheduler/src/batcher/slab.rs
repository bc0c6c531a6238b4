//! Slab: storage of queued requests in reused nodes. Each use of a node has its own ticket.

use super::QueueTicket;
use std::ops::{Index, IndexMut};

/// Index of a node.
pub type NodeId = u32;
/// No node: the end of a list.
pub const NONE: NodeId = NodeId::MAX;

/// Nodes that are kept when the slab is empty; the memory of larger bursts is freed.
const KEPT: usize = 1024;

/// A node. The links belong to [`super::priority_list`].
#[derive(Debug)]
pub struct SlabNode<T> {
    item: Option<T>,
    /// Counts the uses of the node.
    generation: u32,
    pub prev: NodeId,
    /// In a free node: the next free one.
    pub next: NodeId,
    pub older: NodeId,
    pub newer: NodeId,
    pub level: u64,
    /// Its client's turn within the level; 0 where clients are not told apart.
    pub turn: u64,
    pub enqueued: u64,
    /// It has a timeout that has not passed.
    pub timed: bool,
    /// Its timeout has passed, with action `Delay`.
    pub delayed: bool,
    /// The scan that it is pending in.
    pub scan: u64,
}

#[derive(Debug)]
pub struct RequestSlab<T> {
    nodes: Vec<SlabNode<T>>,
    free: NodeId,
    live: usize,
    /// First generation of a new node, above the generations of all freed nodes.
    floor: u32,
}

impl<T> Default for RequestSlab<T> {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: NONE, live: 0, floor: 0 }
    }
}

impl<T> RequestSlab<T> {
    pub fn len(&self) -> usize {
        self.live
    }

    /// Gives the item back when all indices are in use.
    pub fn insert(&mut self, item: T, level: u64, enqueued: u64) -> Result<NodeId, T> {
        let fresh = self.free == NONE;
        let place = if fresh { self.nodes.len() as NodeId } else { self.free };
        if place == NONE {
            return Err(item);
        }
        let generation = if fresh { self.floor } else { self[place].generation };
        let node = SlabNode {
            item: Some(item),
            generation,
            prev: NONE,
            next: NONE,
            older: NONE,
            newer: NONE,
            level,
            turn: 0,
            enqueued,
            timed: false,
            delayed: false,
            scan: 0,
        };
        if fresh {
            self.nodes.push(node);
        } else {
            self.free = std::mem::replace(&mut self[place], node).next;
        }
        self.live += 1;
        Ok(place)
    }

    pub fn remove(&mut self, place: NodeId) -> Option<T> {
        let free = self.free;
        let node = &mut self[place];
        let item = node.item.take()?;
        // A node whose generations are used up is not reused, so that tickets stay unique.
        if let Some(generation) = node.generation.checked_add(1) {
            node.generation = generation;
            node.next = free;
            self.free = place;
        }
        self.live -= 1;
        if self.live == 0 && self.nodes.len() > 4 * KEPT {
            self.shrink();
        }
        Some(item)
    }

    /// Frees nodes beyond [`KEPT`]. The slab is empty, so every node but the used-up ones is free.
    fn shrink(&mut self) {
        let Some(used) = self.nodes[KEPT..].iter().map(|node| node.generation).max() else {
            return;
        };
        let Some(floor) = used.checked_add(1) else { return };
        self.floor = self.floor.max(floor);
        self.nodes.truncate(KEPT);
        self.nodes.shrink_to_fit();
        self.free = NONE;
        for (place, node) in (0..).zip(&mut self.nodes) {
            if node.generation != u32::MAX {
                node.next = self.free;
                self.free = place;
            }
        }
    }

    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.nodes.iter().filter_map(|node| node.item.as_ref())
    }

    pub fn item(&self, place: NodeId) -> Option<&T> {
        self.nodes.get(place as usize)?.item.as_ref()
    }

    pub fn ticket(&self, place: NodeId) -> QueueTicket {
        QueueTicket(u64::from(self[place].generation) << 32 | u64::from(place))
    }

    /// `None` when the request has left.
    pub fn find(&self, ticket: QueueTicket) -> Option<NodeId> {
        let place = (ticket.0 & u64::from(NodeId::MAX)) as NodeId;
        self.item(place)?;
        (self.ticket(place) == ticket).then_some(place)
    }
}

impl<T> Index<NodeId> for RequestSlab<T> {
    type Output = SlabNode<T>;
    fn index(&self, place: NodeId) -> &SlabNode<T> {
        &self.nodes[place as usize]
    }
}

impl<T> IndexMut<NodeId> for RequestSlab<T> {
    fn index_mut(&mut self, place: NodeId) -> &mut SlabNode<T> {
        &mut self.nodes[place as usize]
    }
}

#[cfg(test)]
#[path = "slab_tests.rs"]
mod tests;
