/* SPDX-License-Identifier: Apache-2.0 */
/* net_mpring in the primary process alone: its arguments, its rings, and what it makes of the other
 * end's connection. Two processes are joined by the tests of the transport dpdk-ring. */
#include <errno.h>
#include <rte_bus_vdev.h>
#include <rte_log.h>
#include <rte_ring.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "rig.h"

#define SLOTS 1023u /* a ring holds one less than its size */

static char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];

static void refused(void)
{
	static const char *const wrong[] = {
		"role=primary",
		"socket=/tmp/x",
		"role=third,socket=/tmp/x",
		"role=primary,socket=",
		"role=primary,socket=/tmp/x,colour=red",
		"role=primary,socket=/tmp/x,mac=red",
		"role=secondary,socket=/tmp/x",
		"role=primary,socket=/tmp/x,ring=longerthan15characters",
		"role=primary,role=primary,socket=/tmp/x",
		"role=primary,socket=/nonexistent/x"};

	rig_refuse("net_mpring9", wrong, RTE_DIM(wrong));
}

/* Connect as the secondary process would. */
static int call(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_path);
	CHECK(fd >= 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static bool hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) == 0;
}

static void link_follows(uint16_t id)
{
	int first, second;

	CHECK(!rig_up(id));
	first = call();
	UNTIL(rig_up(id), usleep(1000));
	close(first);
	UNTIL(!rig_up(id), usleep(1000));
	first = call();
	UNTIL(rig_up(id), usleep(1000));
	/* A successor that comes before its predecessor is seen to have gone takes its place. */
	second = call();
	CHECK(rig_up(id));
	UNTIL(hung_up(first), usleep(1000));
	close(first);
	CHECK(rig_up(id));
	close(second);
	UNTIL(!rig_up(id), usleep(1000));
}

/* Frames go by pointer, until the ring is full. */
static void sending(uint16_t id)
{
	struct rte_ring *out = rte_ring_lookup("mpr_link_out");
	struct rte_eth_stats stats;
	struct rte_mbuf *m;

	CHECK(out != NULL);
	for (uint32_t i = 0; i < SLOTS; i++)
		rig_send(id, 0, rig_make(rig_source(), 64, i));
	CHECK_EQ(rte_ring_count(out), SLOTS);
	CHECK_EQ(rte_eth_stats_get(id, &stats), 0);
	CHECK_EQ(stats.opackets, SLOTS);
	CHECK_EQ(stats.obytes, SLOTS * 64);
	/* No room: the application keeps it. */
	m = rig_make(rig_pool(id), 64, SLOTS);
	CHECK_EQ(rte_eth_tx_burst(id, 0, &m, 1), 0);
	rte_pktmbuf_free(m);
	for (uint32_t i = 0; rte_ring_dequeue(out, (void **)&m) == 0; i++) {
		rig_check(m, 64, i);
		rte_pktmbuf_free(m);
	}
}

/* What the sender meant for its own device is gone from what is received. */
static void receiving(uint16_t id)
{
	struct rte_ring *in = rte_ring_lookup("mpr_link_in");
	struct rte_mbuf *m = rig_make(rig_source(), 200, 7), *got;
	struct rte_eth_stats stats;

	CHECK(in != NULL);
	m->port = 77;
	m->ol_flags = RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_RX_RSS_HASH;
	CHECK_EQ(rte_ring_enqueue(in, m), 0);
	got = rig_receive(id, 0);
	CHECK(got == m);
	rig_check(got, 200, 7);
	CHECK_EQ(got->port, id);
	CHECK_EQ(got->ol_flags, 0);
	rte_pktmbuf_free(got);
	CHECK_EQ(rte_eth_stats_get(id, &stats), 0);
	CHECK_EQ(stats.ipackets, 1);
	CHECK_EQ(stats.ibytes, 200);
	CHECK_EQ(rte_eth_stats_reset(id), 0);
	CHECK_EQ(rte_eth_stats_get(id, &stats), 0);
	CHECK_EQ(stats.ipackets + stats.ibytes + stats.opackets + stats.obytes, 0);
}

int main(void)
{
	struct broker *broker = broker_start(NULL); /* for its directory, which goes in any case */
	const struct rig_conf one = {.rx_queues = 1, .tx_queues = 1},
			      two = {.rx_queues = 2, .tx_queues = 1};
	struct rte_ether_addr mac, want = {{2, 0, 0, 0, 0, 9}};
	char arguments[256];
	uint16_t id;

	rig_begin();
	refused();
	snprintf(socket_path, sizeof(socket_path), "%s/ring.sock", broker_directory(broker));
	snprintf(arguments, sizeof(arguments), "role=primary,socket=%s,mac=02:00:00:00:00:09",
		 socket_path);
	CHECK_EQ(rte_vdev_init("net_mpring0", arguments), 0);
	CHECK_EQ(rte_eth_dev_get_port_by_name("net_mpring0", &id), 0);
	CHECK_EQ(rte_eth_macaddr_get(id, &mac), 0);
	CHECK(rte_is_same_ether_addr(&mac, &want));
	rte_log_set_global_level(RTE_LOG_CRIT);
	CHECK(rig_try_start(id, &two) < 0);
	rte_log_set_global_level(RTE_LOG_NOTICE);
	rig_start(id, &one);
	link_follows(id);
	sending(id);
	receiving(id);
	rig_close(id);
	CHECK(access(socket_path, F_OK) < 0);
	broker_stop(broker);
	rig_end();
	return 0;
}
