/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link moves from memory to network devices and back under an open port: name, MAC and MTU
 * stay, every packet arrives.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "test.h"

#define PACKETS 300

/* The kernel drops what is sent on a device until it has seen its carrier, up to a second later. */
static bool running(const char *device)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	strcpy(request.ifr_name, device);
	ret = ioctl(fd, SIOCGIFFLAGS, &request);
	close(fd);
	return ret == 0 && (request.ifr_flags & IFF_RUNNING);
}

static void in_own_network(void)
{
	int fd;

	if (unshare(CLONE_NEWNET) < 0)
		skip("needs root, for a network namespace of its own");
	fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY);
	if (fd >= 0) {
		(void)!write(fd, "1", 1);
		close(fd);
	}
	if (system("ip link add drayt0 type veth peer name drayt1 && ip link set drayt0 up && ip "
		   "link set drayt1 up"))
		skip("needs ip(8) of iproute2 and veth");
	UNTIL(running("drayt0") && running("drayt1"), usleep(1000));
	/* Its queue is attached under the same lock, which this command waits for. */
	CHECK_EQ(system("ip link set drayt0 up && ip link set drayt1 up"), 0);
}

/* An Ethernet frame of a type that nobody else sends. */
static void send_frame(struct dray_port *port, uint32_t length, uint32_t seed)
{
	static const uint8_t header[14] = {2, 0, 0, 0, 0, 'b', 2, 0, 0, 0, 0, 'a', 0x88, 0xb5};
	struct dray_pkt p;

	UNTIL(dray_tx_alloc(port, 0, &p, 1, length + 14) == 1, test_service(port, NULL));
	test_fill(&p, length, seed);
	memmove((uint8_t *)p.data + 14, p.data, length);
	memcpy(p.data, header, 14);
	p.length = length + 14;
	UNTIL(dray_tx_burst(port, 0, &p, 1) == 1, );
}

static void receive_frame(struct dray_port *port, uint32_t length, uint32_t seed)
{
	struct dray_pkt p;

	UNTIL(dray_rx_burst(port, 0, &p, 1) == 1, test_service(port, NULL));
	CHECK_EQ(p.length, length + 14);
	CHECK(dray_pkt_pull(&p, 14) != NULL);
	test_check(&p, length, seed);
	dray_release(&p, 1);
}

static struct dray_info info_of(struct dray_port *port)
{
	struct dray_info info = {.size = sizeof(info)};

	CHECK_EQ(dray_info(port, &info), 0);
	return info;
}

static void traffic(struct pair *p)
{
	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t length = 60 + i * 7 % 1400;

		send_frame(p->a, length, i);
		send_frame(p->b, length, i + 1000);
		receive_frame(p->b, length, i);
		receive_frame(p->a, length, i + 1000);
	}
}

/* The packet of the transport before, and that of the new one: the kernel may be the slower. */
static void receive_both(struct dray_port *port)
{
	unsigned seen = 0;
	struct dray_pkt p;

	for (unsigned i = 0; i < 2; i++) {
		UNTIL(dray_rx_burst(port, 0, &p, 1) == 1, test_service(port, NULL));
		CHECK(p.length == 514 || p.length == 100);
		seen |= p.length == 514 ? 1 : 2;
		dray_release(&p, 1);
	}
	CHECK_EQ(seen, 3);
}

static void move_to(struct pair *p, uint32_t kind)
{
	uint32_t before = info_of(p->a).generation;
	struct dray_pkt early;

	send_frame(p->a, 500, 5); /* under way while the link moves */
	CHECK_EQ(dray_tx_alloc(p->a, 0, &early, 1, 100), 1);
	memset(early.data, 0, 100);
	memcpy((uint8_t *)early.data + 12, "\x88\xb5", 2);
	early.length = 100;
	if (kind == DRAY_LINK_NETDEV)
		broker_move_netdev(p->broker, "drayt0", "drayt1");
	else
		broker_move_shm(p->broker);
	UNTIL(info_of(p->a).generation > before && info_of(p->b).generation > before,
	      test_service(p->a, p->b));
	CHECK_EQ(info_of(p->a).kind, kind);
	CHECK_EQ(info_of(p->b).kind, kind);
	CHECK(info_of(p->a).mtu == 1500 && info_of(p->a).mac[5] == 'a' &&
	      strcmp(info_of(p->a).name, "a") == 0);
	/* from a buffer of the transport before; a device that just came up may refuse */
	UNTIL(dray_tx_burst(p->a, 0, &early, 1) == 1, );
	receive_both(p->b);
}

static const uint8_t addresses[12] = {2, 0, 0, 0, 0, 'b', 2, 0, 0, 0, 0, 'a'};

/* The sum of an Internet checksum, which is 0xffff if it is right. */
static uint32_t summed(const uint8_t *bytes, uint32_t length, uint32_t sum)
{
	for (uint32_t i = 0; i < length; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/*
 * A checksum that was left to be filled in is right on the wire, behind tags too. The receiver gets
 * the first so many bytes of them apart.
 */
static void checksum(struct pair *p, const uint8_t *tags, uint32_t length, uint32_t apart)
{
	/* IPv4, and UDP whose checksum is not filled in. */
	static const char ip[] = "\x08\x00\x45\x00\x00\x20\x00\x00\x00\x00\x40\x11"
				 "\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02\x30\x39"
				 "\x04\xd2\x00\x0c\xff\xff"
				 "dray";
	const uint32_t rest = sizeof(ip) - 1, size = sizeof(addresses) + length + rest;
	struct dray_pkt t, r;
	uint8_t *frame;

	CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, size), 1);
	frame = t.data;
	memcpy(frame, addresses, sizeof(addresses));
	memcpy(frame + sizeof(addresses), tags, length);
	memcpy(frame + sizeof(addresses) + length, ip, rest);
	t.length = size;
	t.flags = DRAY_PKT_CSUM_NEEDED;
	CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
	UNTIL(dray_rx_burst(p->b, 0, &r, 1) == 1, );
	CHECK_EQ(r.length, size - apart);
	frame = r.data;
	CHECK_EQ(memcmp(frame + sizeof(addresses), tags + apart, length - apart), 0);
	CHECK_EQ(summed(frame + r.length - 20, 20, 17 + 12), 0xffff);
	CHECK(!(r.flags & DRAY_PKT_CSUM_NEEDED));
	CHECK_EQ(!(r.flags & DRAY_PKT_VLAN), apart == 0);
	dray_release(&r, 1);
}

static void checksums(struct pair *p)
{
	checksum(p, addresses, 0, 0);
	checksum(p, (const uint8_t[]){0x81, 0, 0, 7}, 4, 4);
	checksum(p, (const uint8_t[]){0x88, 0xa8, 0, 7}, 4, 0);
	checksum(p, (const uint8_t[]){0x88, 0xa8, 0, 7, 0x81, 0, 0, 9}, 8, 0);
}

/* What the kernel refuses counts as dropped: only a tag of 802.1Q has room beyond the MTU. */
static void fits(struct pair *p, uint32_t length, const char *type, bool goes)
{
	uint64_t dropped = test_stats(p->a).tx_dropped;
	struct dray_pkt t, r;

	CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, length), 1);
	memset(t.data, 0, length);
	memcpy(t.data, addresses, sizeof(addresses));
	memcpy((uint8_t *)t.data + 12, type, 2);
	t.length = length;
	CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
	CHECK_EQ(test_stats(p->a).tx_dropped - dropped, !goes);
	if (!goes)
		return;
	UNTIL(dray_rx_burst(p->b, 0, &r, 1) == 1, );
	CHECK_EQ(r.length, r.flags & DRAY_PKT_VLAN ? length - 4 : length);
	dray_release(&r, 1);
}

static void lengths(struct pair *p)
{
	fits(p, 1514, "\x88\xb5", true);
	fits(p, 1515, "\x88\xb5", false);
	fits(p, 1518, "\x88\xb5", false);
	fits(p, 1518, "\x81\x00", true);
	fits(p, 1514, "\x88\xa8", true);
	fits(p, 1515, "\x88\xa8", false);
	fits(p, 1518, "\x88\xa8", false);
}

/* The tag travels beside the frame on both transports. */
static void vlan(struct pair *p)
{
	struct dray_pkt t, r;

	CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, 100), 1);
	memset(t.data, 0, 100);
	memcpy((uint8_t *)t.data + 12, "\x88\xb5", 2);
	t.length = 100;
	t.flags = DRAY_PKT_VLAN;
	t.vlan = 0x2064;
	CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
	UNTIL(dray_rx_burst(p->b, 0, &r, 1) == 1, );
	CHECK_EQ(r.length, 100);
	CHECK(r.flags & DRAY_PKT_VLAN);
	CHECK_EQ(r.vlan, 0x2064);
	dray_release(&r, 1);
}

static void too_long(struct pair *p)
{
	struct dray_pkt t;

	CHECK_EQ(dray_tx_alloc(p->a, 0, &t, 1, 3000), 0);
	CHECK_EQ(dray_wait(p->b, 0, DRAY_WAIT_RX, 30), 0);
	send_frame(p->a, 64, 1);
	CHECK_EQ(dray_wait(p->b, 0, DRAY_WAIT_RX, 20000), DRAY_WAIT_RX);
	CHECK_EQ(dray_wait(p->b, 0, DRAY_WAIT_RX | DRAY_WAIT_ONE_SIDE, 20000), DRAY_WAIT_RX);
	receive_frame(p->b, 64, 1);
	CHECK_EQ(dray_wait(p->b, 0, DRAY_WAIT_TX, 20000), DRAY_WAIT_TX);
	CHECK_EQ(dray_wait(p->b, 0, DRAY_WAIT_TX | DRAY_WAIT_ONE_SIDE, 20000), DRAY_WAIT_TX);
	CHECK_EQ(dray_wait(p->b, 0, DRAY_WAIT_RX | DRAY_WAIT_ONE_SIDE, 30), 0);
}

int main(void)
{
	struct pair p;

	in_own_network();
	p = test_pair(NULL, DRAY_MODE_SLEEPING, 0);
	traffic(&p);
	move_to(&p, DRAY_LINK_NETDEV);
	traffic(&p);
	checksums(&p);
	vlan(&p);
	lengths(&p);
	too_long(&p);
	move_to(&p, DRAY_LINK_SHM);
	traffic(&p);
	vlan(&p);
	UNTIL(test_stats(p.a).maps == 1 && test_stats(p.a).held == 0, test_service(p.a, p.b));
	CHECK_EQ(test_stats(p.a).misuse, 0);
	test_pair_close(&p);
	return 0;
}
