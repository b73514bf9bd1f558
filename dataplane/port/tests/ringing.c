/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a sender rings: for its first burst in a lane whatever the receiver's word says, since the
 * receiver may have fallen asleep before there was this lane; then once for each word.
 */
#include <sys/socket.h>

#include "memory.h"
#include "test.h"

static struct bed bed;
static int bell;

static void send_one(void)
{
	struct dray_owner *owner = &bed.tx->owner;
	struct dray_pkt p;

	CHECK_EQ(owner->ops->alloc(owner, &p, 1, 64), 1);
	p.length = 64;
	CHECK_EQ(owner->ops->send(owner, &p, 1), 1);
}

/* How often the receiver was rung since the last call. */
static unsigned rings(void)
{
	unsigned n = 0;
	char bytes[8];

	while (recv(bell, bytes, sizeof(bytes), MSG_DONTWAIT) == 1)
		n++;
	return n;
}

static void take_all(void)
{
	struct dray_owner *owner = &bed.rx->owner;
	struct dray_pkt p[8];

	CHECK(owner->ops->recv(owner, p, 8) > 0);
	CHECK(!owner->ops->ready(owner));
}

int main(void)
{
	struct lane_options options = {.peer_sleeps = true};
	struct dray_owner *receiver;
	int ends[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	options.bell = ends[0];
	bell = ends[1];
	bed = bed_make_with(options, FEATURES_KNOWN, 0);
	receiver = &bed.rx->owner;

	send_one(); /* the receiver does not know of the lane */
	CHECK_EQ(rings(), 1);
	send_one();
	CHECK_EQ(rings(), 0);
	take_all();

	for (unsigned i = 0; i < 3; i++) {
		CHECK(!receiver->ops->arm(receiver));
		send_one();
		send_one();
		CHECK_EQ(rings(), 1);
		receiver->ops->disarm(receiver);
		take_all();
		send_one();
		CHECK_EQ(rings(), 0);
		take_all();
	}
	bed_free(&bed);
	CHECK_EQ(close(ends[0]), 0);
	CHECK_EQ(close(ends[1]), 0);
	return 0;
}
