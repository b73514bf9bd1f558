/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile end's writes. */
#include "scribble.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "test.h"

uint64_t scribble_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	return *seed ^= *seed << 17;
}

void scribble_at_seals(const struct rawend *e)
{
	const uint32_t page = e->offer.geometry.page_size;

	CHECK(ftruncate(e->memfd, page) < 0 && errno == EPERM);
	CHECK(fallocate(e->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, page) < 0 &&
	      errno == EPERM);
	CHECK(madvise(e->memory, e->offer.geometry.size, MADV_REMOVE) < 0);
	CHECK(mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, e->memfd, 0) == MAP_FAILED);
}

static void put32(struct scribbler *s, _Atomic uint32_t *word, uint64_t value)
{
	atomic_store(word, (uint32_t)value);
	s->writes++;
}

static void put64(struct scribbler *s, _Atomic uint64_t *word, uint64_t value)
{
	atomic_store(word, value);
	s->writes++;
}

/* Indices that creep, jump, and run backwards. */
static void index_words(struct scribbler *s, const struct lane_view *v, bool sends, uint64_t r)
{
	if (sends || !s->follows) {
		if ((r >> 16 & 0xf) == 0)
			put32(s, &v->words->tail, s->head + scribble_random(&s->seed) % 64);
		if ((r >> 24 & 0xff) == 0)
			put32(s, &v->words->tail, scribble_random(&s->seed));
	}
	if (!sends || !s->follows) {
		if ((r >> 20 & 0xf) == 0)
			put32(s, &v->words->returned.value,
			      s->returned + scribble_random(&s->seed) % 64);
		if ((r >> 32 & 0xff) == 0)
			put32(s, &v->words->returned.value, scribble_random(&s->seed));
	}
}

/* Plausible descriptors most of the time, garbage else. */
static void lane(struct scribbler *s, const struct lane_view *v, bool sends)
{
	uint64_t *seed = &s->seed, r = scribble_random(seed);
	uint32_t at = (uint32_t)(r >> 32) & (v->ring_size - 1);
	uint32_t place =
		r & 1 ? (uint32_t)(r >> 8) % (v->pkt_slots + 4) : (uint32_t)scribble_random(seed);
	uint32_t length =
		r & 2 ? (uint32_t)scribble_random(seed) % 2000 : (uint32_t)scribble_random(seed);
	uint64_t rest = r & 4 ? 128 | 1ull << 16 | (scribble_random(seed) & 0x3f) << 16
			      : scribble_random(seed);

	put64(s, &v->ring[at].place_length, place | (uint64_t)length << 32);
	put64(s, &v->ring[at].offset_flags_meta, rest);
	put64(s, &v->extensions[at].stamp, scribble_random(seed));
	put32(s, &v->completions[at], place);
	put64(s, &v->words->newest.place_length, place | (uint64_t)length << 32);
	put64(s, &v->words->newest.offset_flags_meta, rest);
	put32(s, &v->words->newest_tail, atomic_load(&v->words->tail));
	index_words(s, v, sends, r);
	put32(s, &v->words->receiver_bell.value, scribble_random(seed));
	put32(s, &v->words->sender_bell.value, scribble_random(seed));
	v->packets[scribble_random(seed) % ((uint64_t)v->pkt_slots * v->pkt_stride)] ^= (uint8_t)r;
	s->writes++;
}

void scribble(struct scribbler *s, const struct rawend *e)
{
	uint64_t r = scribble_random(&s->seed);

	lane(s, &e->tx, true);
	lane(s, &e->rx, false);
	if (r % 512 == 0)
		(void)!send(e->bells[0], "junk", 1 + r / 512 % 4, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (r % 2048 == 0)
		memset(e->memory, (int)(r >> 32), 4096); /* the header page */
}
