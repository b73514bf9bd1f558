/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames on a network interface: one AF_PACKET socket with mapped rings, version 2 (which hands
 * over each frame at once).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frame.h"
#include "io.h"
#include "net.h"

/* where the kernel expects a frame to send */
#define TX_OFFSET (TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))
#define BLOCK_BYTES 65536u
/*
 * Size of a VLAN tag. The kernel removes it from a received frame and reports it in the header.
 */
#define TAG_BYTES 4u
#define MAC_BYTES 12u

struct ring {
	uint8_t *memory;
	uint32_t frame_bytes, frames, next;
};

struct io_packet {
	struct io io;
	int fd;
	void *map;
	size_t map_bytes;
	struct ring tx, rx;
	unsigned received;
	uint64_t drops;
	struct frame_seen seen;
};

static struct tpacket2_hdr *frame_at(const struct ring *r, uint32_t ahead)
{
	return (struct tpacket2_hdr *)(r->memory +
				       (size_t)((r->next + ahead) % r->frames) * r->frame_bytes);
}

/* acquire: pairs with the kernel, which sets the status when it is done with the frame. */
static uint32_t status_of(struct tpacket2_hdr *h)
{
	return atomic_load_explicit((_Atomic uint32_t *)&h->tp_status, memory_order_acquire);
}

/* release: pairs with the kernel, which reads the frame after the status. */
static void hand_over(struct tpacket2_hdr *h, uint32_t status)
{
	atomic_store_explicit((_Atomic uint32_t *)&h->tp_status, status, memory_order_release);
}

static unsigned packet_alloc(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n,
			     uint32_t longest)
{
	struct io_packet *p = (struct io_packet *)io;
	uint32_t headers = frame_headers_to(&p->io.address);
	unsigned i;

	(void)flow;
	(void)longest;
	for (i = 0; i < n && i < p->tx.frames; i++) {
		struct tpacket2_hdr *h = frame_at(&p->tx, i);
		uint32_t status = status_of(h);
		uint8_t *frame = (uint8_t *)h + TX_OFFSET;

		if (status != TP_STATUS_AVAILABLE && !(status & TP_STATUS_WRONG_FORMAT))
			break;
		h->tp_len = bufs[i].length + headers;
		bufs[i].data = frame + headers;
		bufs[i].index = i;
	}
	return i;
}

/* Tell the kernel that there are frames. */
static int kick(struct io_packet *p)
{
	if (sendto(p->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0 || errno == EAGAIN ||
	    errno == ENOBUFS || errno == EINTR)
		return 0;
	return -errno;
}

/* Hand the next n frames of the ring to the kernel. */
static int send_next(struct io_packet *p, unsigned n)
{
	int ret;

	for (unsigned i = 0; i < n; i++)
		hand_over(frame_at(&p->tx, i), TP_STATUS_SEND_REQUEST);
	p->tx.next = (p->tx.next + n) % p->tx.frames;
	ret = kick(p);
	return ret < 0 ? ret : (int)n;
}

static int packet_send(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n)
{
	struct io_packet *p = (struct io_packet *)io;

	(void)flow;
	for (unsigned i = 0; i < n && p->io.address.ip6; i++)
		frame_finish(bufs[i].data - FRAME_HEADERS6, FRAME_HEADERS6, bufs[i].length);
	return send_next(p, n);
}

static void packet_discard(struct io *io, struct io_buf *bufs, unsigned n)
{
	(void)io; /* the frames that were not handed over are allocated next */
	(void)bufs;
	(void)n;
}

/* Put the tag back into the room that was reserved before the frame. */
static uint8_t *with_tag(struct tpacket2_hdr *h, uint8_t *frame)
{
	uint16_t tag[2] = {
		htons(h->tp_status & TP_STATUS_VLAN_TPID_VALID ? h->tp_vlan_tpid : ETH_P_8021Q),
		htons(h->tp_vlan_tci)};

	memmove(frame - TAG_BYTES, frame, MAC_BYTES);
	memcpy(frame - TAG_BYTES + MAC_BYTES, tag, TAG_BYTES);
	return frame - TAG_BYTES;
}

static int packet_receive(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_packet *p = (struct io_packet *)io;

	for (p->received = 0; p->received < n && p->received < p->rx.frames; p->received++) {
		struct tpacket2_hdr *h = frame_at(&p->rx, p->received);
		uint32_t status = status_of(h), headers, length, bytes;
		uint8_t *frame;

		if (!(status & TP_STATUS_USER))
			break; /* until then, the rest of the header is not valid */
		frame = (uint8_t *)h + h->tp_mac;
		bytes = h->tp_snaplen == h->tp_len ? h->tp_snaplen : 0;
		if (status & TP_STATUS_VLAN_VALID && bytes >= MAC_BYTES) {
			frame = with_tag(h, frame);
			bytes += TAG_BYTES;
		}
		length = frame_find(&p->seen, frame, bytes, &headers);
		bufs[p->received] = (struct io_buf){.data = frame + headers,
						    .length = length,
						    .headers = headers,
						    .index = p->received};
	}
	return (int)p->received;
}

static unsigned packet_reply(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_packet *p = (struct io_packet *)io;
	unsigned i;

	for (i = 0; i < n && status_of(frame_at(&p->tx, i)) == TP_STATUS_AVAILABLE; i++) {
		struct tpacket2_hdr *h = frame_at(&p->tx, i);
		uint8_t *frame = (uint8_t *)h + TX_OFFSET;

		h->tp_len = bufs[i].length + bufs[i].headers;
		memcpy(frame, bufs[i].data - bufs[i].headers, h->tp_len);
		frame_answer(frame, bufs[i].headers, io->address.from_mac);
		frame_finish(frame, bufs[i].headers, bufs[i].length);
	}
	if (i && send_next(p, i) < 0)
		return 0;
	return i;
}

static void packet_done(struct io *io)
{
	struct io_packet *p = (struct io_packet *)io;

	for (unsigned i = 0; i < p->received; i++)
		hand_over(frame_at(&p->rx, i), TP_STATUS_KERNEL);
	p->rx.next = (p->rx.next + p->received) % p->rx.frames;
	p->received = 0;
}

static int packet_wait(struct io *io, unsigned what, uint64_t until_ns)
{
	struct io_packet *p = (struct io_packet *)io;
	struct pollfd fd = {
		.fd = p->fd,
		.events = (short)((what & IO_RX ? POLLIN : 0) | (what & IO_TX ? POLLOUT : 0))};
	int ret;

	if (what & IO_TX) {
		ret = kick(p); /* frames that a full queue refused */
		if (ret < 0)
			return ret;
	}
	ret = io_poll(&fd, 1, until_ns);
	return ret < 0 ? ret : 0;
}

/* Reading resets the kernel's counter. */
static uint64_t packet_drops(struct io *io)
{
	struct io_packet *p = (struct io_packet *)io;
	struct tpacket_stats stats;
	socklen_t length = sizeof(stats);

	if (p->rx.frames && getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) == 0)
		p->drops += stats.tp_drops;
	return p->drops;
}

static void packet_close(struct io *io)
{
	struct io_packet *p = (struct io_packet *)io;

	if (p->map)
		munmap(p->map, p->map_bytes);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

static const struct io_ops ops = {
	.alloc = packet_alloc,
	.send = packet_send,
	.discard = packet_discard,
	.receive = packet_receive,
	.reply = packet_reply,
	.done = packet_done,
	.wait = packet_wait,
	.drops = packet_drops,
	.close = packet_close,
};

/* An IPv6 address of the interface, of the destination's scope if possible; otherwise ::. */
static void find_ip6(struct io_packet *p, const struct options *o, const char *name)
{
	int local = IN6_IS_ADDR_LINKLOCAL(&o->to.v6.sin6_addr);
	bool suits = false;
	struct ifaddrs *all;

	if (getifaddrs(&all) < 0)
		return;
	for (struct ifaddrs *a = all; a && !suits; a = a->ifa_next) {
		const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)a->ifa_addr;

		if (!ip6 || ip6->sin6_family != AF_INET6 || strcmp(a->ifa_name, name) != 0)
			continue;
		suits = !IN6_IS_ADDR_LINKLOCAL(&ip6->sin6_addr) == !local;
		memcpy(p->io.address.from_ip, &ip6->sin6_addr, 16);
	}
	freeifaddrs(all);
}

static void set_source(struct io_packet *p, const struct options *o, const char *name)
{
	struct ifreq r = {0};

	if (p->io.address.ip6) {
		find_ip6(p, o, name);
		return;
	}
	strcpy(r.ifr_name, name);
	r.ifr_addr.sa_family = AF_INET;
	if (ioctl(p->fd, SIOCGIFADDR, &r) == 0) /* otherwise 0.0.0.0 */
		memcpy(p->io.address.from_ip, &((struct sockaddr_in *)&r.ifr_addr)->sin_addr, 4);
}

/* Addresses and MTU of the interface. Returns its index, or -errno. */
static int look_up(struct io_packet *p, const struct options *o, const char *name)
{
	struct ifreq r = {0};
	int index;

	if (strlen(name) >= sizeof(r.ifr_name))
		return -ENODEV;
	strcpy(r.ifr_name, name);
	if (ioctl(p->fd, SIOCGIFINDEX, &r) < 0)
		return -errno;
	index = r.ifr_ifindex;
	if (ioctl(p->fd, SIOCGIFMTU, &r) < 0)
		return -errno;
	p->io.frame_max = (uint32_t)r.ifr_mtu + ETH_HLEN > FRAME_MAX
				  ? FRAME_MAX
				  : (uint32_t)r.ifr_mtu + ETH_HLEN;
	if (ioctl(p->fd, SIOCGIFHWADDR, &r) < 0)
		return -errno;
	memcpy(p->io.address.from_mac, r.ifr_hwaddr.sa_data, 6);
	io_set_destination(&p->io, o);
	set_source(p, o, name);
	return index;
}

/* Frame sizes are a power of two, and the blocks hold whole frames, in about so many bytes. */
static struct tpacket_req shape(uint32_t frame_max, uint64_t bytes)
{
	struct tpacket_req r = {.tp_frame_size = 2048, .tp_block_size = BLOCK_BYTES};

	while (r.tp_frame_size < frame_max + TPACKET2_HDRLEN + TPACKET_ALIGNMENT + TAG_BYTES)
		r.tp_frame_size *= 2;
	if (r.tp_block_size < r.tp_frame_size)
		r.tp_block_size = r.tp_frame_size;
	r.tp_block_nr = (unsigned)(bytes / r.tp_block_size) + 1;
	r.tp_frame_nr = r.tp_block_nr * (r.tp_block_size / r.tp_frame_size);
	return r;
}

static int make_rings(struct io_packet *p, const struct options *o)
{
	struct tpacket_req r = shape(p->io.frame_max, o->buffer);
	bool rx = io_receives(o), tx = io_sends(o) || o->reflect;
	size_t bytes = (size_t)r.tp_block_size * r.tp_block_nr;
	int version = TPACKET_V2, reserve = TAG_BYTES;
	uint8_t *map;

	if (setsockopt(p->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    (rx && setsockopt(p->fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof(reserve)) < 0) ||
	    (rx && setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &r, sizeof(r)) < 0) ||
	    (tx && setsockopt(p->fd, SOL_PACKET, PACKET_TX_RING, &r, sizeof(r)) < 0))
		return -errno;
	p->map_bytes = bytes * (rx + tx);
	map = mmap(NULL, p->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	p->map = map;
	if (rx)
		p->rx = (struct ring){
			.memory = map, .frame_bytes = r.tp_frame_size, .frames = r.tp_frame_nr};
	if (tx)
		p->tx = (struct ring){.memory = map + (rx ? bytes : 0),
				      .frame_bytes = r.tp_frame_size,
				      .frames = r.tp_frame_nr};
	return 0;
}

/*
 * Receive only incoming frames: IPv4, eCPRI, frames with a VLAN tag or an MPLS label, and UDP over
 * IPv6 (other IPv6 is neighbour discovery). A socket takes one protocol or all, so it takes all,
 * and a filter selects. The kernel has removed one of two tags. A sender receives nothing. Returns
 * the protocol to bind to, or -errno.
 */
static int choose(int fd, const struct options *o)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12), /* the type of the frame */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_8021Q, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TYPE_ECPRI, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_MPLS_UC, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN + 6), /* the next header */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(*filter), .filter = filter};
	int one = 1;

	if (!io_receives(o))
		return 0;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) < 0)
		return -errno;
	return htons(ETH_P_ALL);
}

static int set_up(struct io_packet *p, const struct options *o, const char *name)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET};
	int ret;

	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return -errno;
	ret = look_up(p, o, name);
	if (ret < 0)
		return ret;
	at.sll_ifindex = ret;
	ret = make_rings(p, o);
	if (ret < 0)
		return ret;
	ret = choose(p->fd, o);
	if (ret < 0)
		return ret;
	at.sll_protocol = (uint16_t)ret;
	return bind(p->fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
}

struct io *io_packet_open(const struct options *o, const char *name, struct io_error *error)
{
	struct io_packet *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return io_fail(error, "no memory");
	p->fd = -1;
	p->io.ops = &ops;
	snprintf(p->io.name, sizeof(p->io.name), "packet:%.32s", name);
	ret = set_up(p, o, name);
	if (ret == 0)
		return &p->io;
	io_fail(error, "packet:%s: %s%s", name, strerror(-ret),
		ret == -EPERM ? "; it needs CAP_NET_RAW" : "");
	packet_close(&p->io);
	return NULL;
}
