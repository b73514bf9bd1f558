/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of any size arrive whole and in order, in pieces of any size, copied or shown. */
#include <errno.h>
#include <pthread.h>

#include "rig.h"

#define BLOCKS 300u
#define LARGEST (MESSAGE * MESSAGES * 3) /* more than all buffers */

struct link {
	struct broker *broker;
	struct dray_iq *from, *to;
};

static struct link link_new(void)
{
	struct link l = {.broker = rig_start()};

	l.from = rig_open(l.broker, "a", DRAY_IQ_SEND);
	l.to = rig_open(l.broker, "b", DRAY_IQ_RECEIVE);
	return l;
}

static void link_free(struct link *l)
{
	dray_iq_close(l->from);
	dray_iq_close(l->to);
	broker_stop(l->broker);
}

/* Byte `at` of the stream; every fourth block is of zeros. */
static uint8_t byte_at(uint32_t block, uint64_t at)
{
	return block % 4 == 3 ? 0 : (uint8_t)(at * 7 + at / 251);
}

static size_t size_of(uint32_t block)
{
	static const size_t sizes[] = {8, MESSAGE, MESSAGE - 8, MESSAGE + 8, 1, LARGEST, 1920};

	return sizes[block % 7];
}

static void *send_blocks(void *argument)
{
	struct dray_iq *stream = argument;
	uint8_t *block = malloc(LARGEST);
	uint64_t at = 0;

	CHECK(block != NULL);
	for (uint32_t n = 0; n < BLOCKS; n++) {
		for (size_t i = 0; i < size_of(n); i++)
			block[i] = byte_at(n, at + i);
		CHECK_EQ(dray_iq_send(stream, n % 4 == 3 ? NULL : block, size_of(n)), 0);
		at += size_of(n);
	}
	free(block);
	return NULL;
}

static uint64_t total(void)
{
	uint64_t sum = 0;

	for (uint32_t n = 0; n < BLOCKS; n++)
		sum += size_of(n);
	return sum;
}

/* Where the reader is in the stream. */
struct place {
	uint32_t block;
	size_t in_block;
	uint64_t at;
};

static void check_bytes(struct place *p, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++, p->at++) {
		CHECK_EQ(bytes[i], byte_at(p->block, p->at));
		if (++p->in_block == size_of(p->block)) {
			p->in_block = 0;
			p->block++;
		}
	}
}

static void read_copies(struct dray_iq *stream)
{
	static const size_t pieces[] = {3, 5000, 64, 40000, 1};
	uint8_t *piece = malloc(40000);
	struct place p = {0};

	CHECK(piece != NULL);
	for (unsigned i = 0; p.at < total(); i++) {
		size_t want = pieces[i % 5], left = (size_t)(total() - p.at);
		ssize_t n;

		want = want < left ? want : left;
		n = dray_iq_receive(stream, piece, want, 20000);
		CHECK_EQ(n, want);
		check_bytes(&p, piece, want);
	}
	free(piece);
}

static void read_in_place(struct dray_iq *stream)
{
	struct place p = {0};

	while (p.at < total()) {
		const void *samples;
		ssize_t n = dray_iq_peek(stream, &samples, 20000);

		CHECK(n > 0);
		if (p.in_block == 0)
			CHECK_EQ((uintptr_t)samples % 64, 0);
		n = n > 1000 ? 1000 : n; /* the rest is shown again */
		check_bytes(&p, samples, (size_t)n);
		dray_iq_consume(stream, (size_t)n);
	}
}

static void stream_through(void (*read)(struct dray_iq *))
{
	struct link l = link_new();
	struct dray_iq_stats sent, received;
	pthread_t thread;
	uint64_t start;

	CHECK_EQ(dray_iq_start(l.from, &start), -ENOTCONN);
	CHECK_EQ(pthread_create(&thread, NULL, send_blocks, l.from), 0);
	read(l.to);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(dray_iq_start(l.from, &start), 0);
	CHECK_EQ(start, 0);
	sent = rig_stats(l.from);
	received = rig_stats(l.to);
	CHECK_EQ(sent.bytes, total());
	CHECK_EQ(received.bytes, total());
	CHECK_EQ(sent.messages, received.messages);
	CHECK_EQ(received.gaps + received.skipped_bytes, 0);
	link_free(&l);
}

/* What was sent arrives after the sender has closed; then nothing comes. */
static void closed_sender(void)
{
	struct link l = link_new();
	uint8_t bytes[100];

	CHECK_EQ(dray_iq_send(l.from, "samples", 8), 0);
	dray_iq_close(l.from);
	CHECK_EQ(dray_iq_receive(l.to, bytes, 8, 20000), 8);
	CHECK_EQ(memcmp(bytes, "samples", 8), 0);
	CHECK_EQ(dray_iq_receive(l.to, bytes, sizeof(bytes), 0), 0);
	dray_iq_close(l.to);
	broker_stop(l.broker);
}

static void refusals(void)
{
	struct link l = link_new();
	struct dray_iq_options o = {.size = sizeof(o), .directory = broker_directory(l.broker)};
	struct dray_iq_stats stats = {.size = 5000};
	struct dray_iq *other;
	char byte = 0;

	CHECK_EQ(dray_iq_send(l.to, &byte, 1), -EINVAL);
	CHECK_EQ(dray_iq_receive(l.from, &byte, 1, 0), -EINVAL);
	CHECK_EQ(dray_iq_stats(l.from, &stats), -E2BIG);
	CHECK_EQ(dray_iq_open("a", DRAY_IQ_SEND, &o, &other), -EBUSY);
	CHECK_EQ(dray_iq_open("c", DRAY_IQ_SEND, &o, &other), -ENOENT);
	CHECK_EQ(dray_iq_open("a", (enum dray_iq_direction)3, &o, &other), -EINVAL);
	o.reserved = 1;
	CHECK_EQ(dray_iq_open("a", DRAY_IQ_SEND, &o, &other), -E2BIG);
	link_free(&l);
}

/* Both ends say so if the link carries packets only. */
static void no_messages(void)
{
	struct link l = {.broker = broker_start(NULL)};
	char byte = 0;
	int ret;

	l.from = rig_open(l.broker, "a", DRAY_IQ_SEND);
	l.to = rig_open(l.broker, "b", DRAY_IQ_RECEIVE);
	CHECK_EQ(dray_iq_send(l.from, &byte, 1), -EMSGSIZE);
	UNTIL((ret = (int)dray_iq_receive(l.to, &byte, 1, 10)) != 0, );
	CHECK_EQ(ret, -EMSGSIZE);
	CHECK(strstr(dray_iq_strerror(-EMSGSIZE), "messages") != NULL);
	link_free(&l);
}

int main(void)
{
	stream_through(read_copies);
	stream_through(read_in_place);
	closed_sender();
	refusals();
	no_messages();
	return 0;
}
