/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits does not burn CPU time, ends when stopped, and keeps to time-outs. */
#include <errno.h>
#include <pthread.h>

#include "rig.h"

#define QUIET_MS 1000
#define QUIET_CPU_NS 50000000u /* 5 % of that, sanitizers included */

static uint8_t block[MESSAGE];

static void *send_until_stopped(void *stream)
{
	int ret;

	while ((ret = dray_iq_send(stream, block, sizeof(block))) == 0)
		;
	CHECK_EQ(ret, -ECANCELED);
	return NULL;
}

static void *receive_until_stopped(void *stream)
{
	uint8_t bytes[8];

	CHECK_EQ(dray_iq_receive(stream, bytes, sizeof(bytes), -1), -ECANCELED);
	CHECK_EQ(dray_iq_receive(stream, bytes, sizeof(bytes), -1), -ECANCELED);
	return NULL;
}

/* Let it wait for a second, when it has sent so many messages, and stop it. */
static void quietly(void *(*wait)(void *), struct dray_iq *stream, uint64_t messages)
{
	pthread_t thread;
	uint64_t cpu, used;

	CHECK_EQ(pthread_create(&thread, NULL, wait, stream), 0);
	UNTIL(rig_stats(stream).messages == messages, usleep(1000));
	usleep(200000);
	cpu = rig_cpu_ns();
	usleep(QUIET_MS * 1000);
	used = rig_cpu_ns() - cpu;
	printf("%.2f ms of CPU time in a second\n", (double)used / 1e6);
	CHECK(used < QUIET_CPU_NS);
	dray_iq_stop(stream);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Without a peer. */
static void alone(const char *port, enum dray_iq_direction direction)
{
	struct broker *broker = rig_fork();
	struct dray_iq *stream = rig_open(broker, port, direction);

	quietly(direction == DRAY_IQ_SEND ? send_until_stopped : receive_until_stopped, stream, 0);
	dray_iq_close(stream);
	broker_stop(broker);
}

/* With a peer that does nothing: the sender has filled all buffers, the receiver gets none. */
static void with_silent_peer(enum dray_iq_direction direction)
{
	struct broker *broker = rig_fork();
	struct dray_iq *from = rig_open(broker, "a", DRAY_IQ_SEND);
	struct dray_iq *to = rig_open(broker, "b", DRAY_IQ_RECEIVE);

	if (direction == DRAY_IQ_SEND) {
		quietly(send_until_stopped, from, MESSAGES);
		CHECK_EQ(rig_stats(from).messages, MESSAGES);
	} else {
		quietly(receive_until_stopped, to, 0);
	}
	dray_iq_close(from);
	dray_iq_close(to);
	broker_stop(broker);
}

static void time_outs(void)
{
	struct broker *broker = rig_start();
	struct dray_iq *to = rig_open(broker, "b", DRAY_IQ_RECEIVE);
	uint8_t bytes[8];
	uint64_t start = clock_ns();

	CHECK_EQ(dray_iq_receive(to, bytes, sizeof(bytes), 0), 0);
	CHECK_EQ(dray_iq_receive(to, bytes, sizeof(bytes), 30), 0);
	CHECK(clock_ns() - start >= 29000000);
	dray_iq_close(to);
	broker_stop(broker);
}

int main(void)
{
	alone("a", DRAY_IQ_SEND);
	alone("b", DRAY_IQ_RECEIVE);
	with_silent_peer(DRAY_IQ_SEND);
	with_silent_peer(DRAY_IQ_RECEIVE);
	time_outs();
	return 0;
}
