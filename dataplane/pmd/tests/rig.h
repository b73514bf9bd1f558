/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests have in common: EAL without huge pages, a broker in a thread, devices on its two
 * ports.
 */
#ifndef NET_DRAY_RIG_H
#define NET_DRAY_RIG_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "test.h" /* of libdray's tests: CHECK, UNTIL, the broker */

#define RIG_MBUFS 1023

/*
 * Mbufs of each pool that a thread keeps for itself, as those of applications do; 0, so that tests
 * count them. Set it before rig_begin.
 */
extern unsigned int rig_cache;

/* One lcore; so much memory as a test takes, in normal pages. */
void rig_begin(void);
void rig_end(void);

/*
 * A device on a port of the broker, not configured. `more`: further arguments, with their comma, or
 * "".
 */
uint16_t rig_probe(struct broker *broker, const char *device, const char *port, const char *more);

/* No device is made of any of these arguments. */
void rig_refuse(const char *device, const char *const *wrong, unsigned int n);

/* How a device is configured. 0 is one queue each, without offloads. */
struct rig_conf {
	uint16_t rx_queues, tx_queues;
	uint64_t rx_offloads, tx_offloads;
	bool lsc, rx_interrupts;
	struct rte_mempool *pool; /* NULL: the rig's own for that device */
};

/* Configure and start; returns what the first call that failed returned, or 0. */
int rig_try_start(uint16_t id, const struct rig_conf *conf);
void rig_start(uint16_t id, const struct rig_conf *conf);

/* Probe and start, with all by default. */
uint16_t rig_open(struct broker *broker, const char *device, const char *port, const char *more);

/* Begin with a broker in a thread and, on its ports, net_dray0 and net_dray1, which are up. */
struct broker *rig_begin_pair(uint16_t *a, uint16_t *b, const char *more_of_b);
/* End, when the devices are closed. */
void rig_end_pair(struct broker *broker);

/* Stop, close and remove. */
void rig_close(uint16_t id);

struct rte_mempool *rig_pool(uint16_t id); /* from which the device receives */
struct rte_mempool *rig_source(void);	   /* to send from; its mbufs are counted at the end */

bool rig_up(uint16_t id);
void rig_wait_up(uint16_t id, uint16_t other);

/* The value of an extended statistic; fails if there is none of that name. */
uint64_t rig_xstat(uint16_t id, const char *name);

/* An mbuf of one segment with `length` bytes that follow from the seed. */
struct rte_mbuf *rig_make(struct rte_mempool *pool, uint32_t length, uint32_t seed);
void rig_check(const struct rte_mbuf *m, uint32_t length, uint32_t seed);

void rig_send(uint16_t id, uint16_t queue, struct rte_mbuf *m);
struct rte_mbuf *rig_receive(uint16_t id, uint16_t queue);

/* Send one frame and receive it at the other; checked. */
void rig_pass(uint16_t from, uint16_t to, uint32_t length, uint32_t seed);

#endif
