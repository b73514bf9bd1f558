/* SPDX-License-Identifier: Apache-2.0 */
/* Map the memory of a capture, and copy packets to it. */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "clock.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define ADDRESSES 12 /* bytes of a frame before its type */
#define TAG 4

int capture_derive(const struct wire_capture *c, uint64_t *ring_size, uint64_t *size)
{
	uint64_t ring;

	if (c->slots < CAPTURE_SLOTS_MIN || c->slots > CAPTURE_SLOTS_MAX ||
	    (c->slots & (c->slots - 1)) || c->slot_size % 64 || c->snaplen < 1 ||
	    c->snaplen > CAPTURE_SNAPLEN_MAX ||
	    c->slot_size < sizeof(struct capture_record) + (uint64_t)c->snaplen ||
	    c->slot_size > sizeof(struct capture_record) + CAPTURE_SNAPLEN_MAX + 64 ||
	    c->queues < 1 || c->queues > DRAY_MAX_QUEUES || c->reserved)
		return -EINVAL;
	ring = sizeof(struct capture_words) + (uint64_t)c->slots * c->slot_size;
	*ring_size = (ring + LAYOUT_PAGE - 1) / LAYOUT_PAGE * LAYOUT_PAGE;
	*size = 2 * c->queues * *ring_size;
	return *size <= CAPTURE_SIZE_MAX ? 0 : -EINVAL;
}

static int check_memfd(int fd, uint64_t size)
{
	struct stat st;
	int seals;

	if (fstat(fd, &st) < 0)
		return -errno;
	/*
	 * All pages exist, so touching one allocates nothing. They are mapped on first use: mapping
	 * all at once would take milliseconds.
	 */
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size ||
	    (uint64_t)st.st_blocks * 512 < size)
		return -EPROTO;
	seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & SEALS) == SEALS ? 0 : -EPERM;
}

static void make_rings(struct capture *c, const struct wire_capture *start, uint64_t ring_size)
{
	for (unsigned i = 0; i < 2 * start->queues; i++) {
		uint8_t *ring = (uint8_t *)c->memory + i * ring_size;

		c->rings[i] = (struct capture_ring){
			.capture = c,
			.words = (struct capture_words *)ring,
			.slots = ring + sizeof(struct capture_words),
			.slot_count = start->slots,
			.slot_size = start->slot_size,
			.snaplen = start->snaplen,
		};
	}
}

int capture_map(const struct wire_capture *start, int fd, struct capture **capture)
{
	struct capture *c;
	uint64_t ring_size, size;
	int ret = capture_derive(start, &ring_size, &size);

	if (ret == 0)
		ret = check_memfd(fd, size);
	if (ret)
		return ret;
	c = aligned_alloc(LAYOUT_ALONE, sizeof(*c));
	if (!c)
		return -ENOMEM;
	memset(c, 0, sizeof(*c));
	c->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c->memory == MAP_FAILED) {
		ret = -errno;
		free(c);
		return ret;
	}
	(void)madvise(c->memory, size, MADV_DONTFORK);
	c->size = size;
	c->queues = start->queues;
	make_rings(c, start, ring_size);
	*capture = c;
	return 0;
}

void capture_free(struct capture *capture)
{
	munmap(capture->memory, capture->size);
	free(capture);
}

/* Append to a slot, up to its limit. */
static uint32_t append(uint8_t *to, uint32_t used, uint32_t limit, const void *from, uint32_t n)
{
	n = n < limit - used ? n : limit - used;
	memcpy(to + used, from, n);
	return used + n;
}

/* Write the frame as it would be on a wire: with its VLAN tag inserted. */
static void write_record(const struct capture_ring *ring, uint32_t index, const struct dray_pkt *p,
			 uint64_t time)
{
	uint8_t *slot = ring->slots + (size_t)(index & (ring->slot_count - 1)) * ring->slot_size;
	uint8_t *to = slot + sizeof(struct capture_record);
	bool tagged = (p->flags & DRAY_PKT_VLAN) && p->length > ADDRESSES;
	const uint8_t tag[TAG] = {0x81, 0x00, (uint8_t)(p->vlan >> 8), (uint8_t)p->vlan};
	struct capture_record r = {
		.time = time,
		.length = p->length + (tagged ? TAG : 0),
		.flags = p->flags & (DRAY_PKT_CSUM_NEEDED | DRAY_PKT_CSUM_GOOD),
		.meta = p->meta,
	};

	if (tagged) {
		r.captured = append(to, 0, ring->snaplen, p->data, ADDRESSES);
		r.captured = append(to, r.captured, ring->snaplen, tag, TAG);
		r.captured = append(to, r.captured, ring->snaplen,
				    (const uint8_t *)p->data + ADDRESSES, p->length - ADDRESSES);
	} else {
		r.captured = append(to, 0, ring->snaplen, p->data, p->length);
	}
	memcpy(slot, &r, sizeof(r));
}

/*
 * Slots that the reader has freed. A reader whose head is out of range gets nothing until it is in
 * range.
 */
static uint32_t room(const struct capture_ring *ring)
{
	/*
	 * acquire: pairs with the reader's release of head (ring.advance in Go): the reader is done
	 * with the slots that are overwritten next.
	 */
	uint32_t used = ring->tail - atomic_load_explicit(&ring->words->head, memory_order_acquire);

	return used <= ring->slot_count ? ring->slot_count - used : 0;
}

void capture_ring_fill(struct capture_ring *ring, const struct dray_pkt *pkts, unsigned n)
{
	uint32_t free_slots = room(ring);
	/*
	 * The clock of every other capture, and the only one that no time namespace shifts. Read
	 * once a burst: it costs as much as a packet.
	 */
	uint64_t time = clock_of(CLOCK_REALTIME);

	for (ring->filled = 0; ring->filled < n && ring->filled < free_slots; ring->filled++)
		write_record(ring, ring->tail + ring->filled, &pkts[ring->filled], time);
}

void capture_ring_publish(struct capture_ring *ring, unsigned n)
{
	uint32_t records = n < ring->filled ? n : ring->filled;

	ring->tail += records;
	/* release: pairs with the reader's acquire of tail (ring.begin in Go). */
	atomic_store_explicit(&ring->words->tail, ring->tail, memory_order_release);
	if (n > records) {
		ring->lost += n - records;
		atomic_store_explicit(&ring->words->lost, ring->lost, memory_order_relaxed);
	}
}
