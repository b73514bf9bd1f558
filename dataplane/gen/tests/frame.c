/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: written, read, turned and remembered, plain and in each encapsulation. */
#include "frame.h"
#include "packet.h"

#include "support.h"

static void frames(void)
{
	struct frame_address a = {.from_mac = {2, 0, 0, 0, 0, 1},
				  .to_mac = {2, 0, 0, 0, 0, 2},
				  .from_ip = {192, 0, 2, 1},
				  .to_ip = {192, 0, 2, 2},
				  .to_port = 5010};
	static const uint8_t own[6] = {2, 0, 0, 0, 0, 9};
	uint8_t f[98], before[98];
	uint32_t sum = 0, headers;

	memset(f, 0, sizeof(f));
	frame_write(f, &a, 5013, 56, 0);
	for (unsigned i = 14; i < 34; i += 2)
		sum += (uint32_t)f[i] << 8 | f[i + 1];
	CHECK_EQ((sum & 0xffff) + (sum >> 16), 0xffff); /* RFC 1071 */
	CHECK_EQ(frame_payload(f, 98, &headers), 56);
	CHECK_EQ(headers, 42);
	CHECK_EQ(frame_payload(f, 97, &headers), 0);
	memcpy(before, f, sizeof(f));
	frame_turn(f, 42);
	CHECK(f[5] == 1 && f[11] == 2 && f[29] == 2 && f[33] == 1 && f[35] == (5010 & 255) &&
	      f[37] == (5013 & 255));
	frame_turn(f, 42);
	frame_finish(f, 42, 56);
	CHECK(memcmp(f, before, sizeof(f)) == 0);
	memset(f, 0xff, 6);
	frame_answer(f, 42, own);
	CHECK(memcmp(f + 6, own, 6) == 0 && f[5] == 1); /* a broadcast is answered by one */
	for (unsigned n = 0; n < 42; n++)
		CHECK_EQ(frame_payload(f, n, &headers), 0);
	f[14] = 0x46; /* options */
	CHECK_EQ(frame_payload(f, 98, &headers), 0);
	f[14] = 0x45;
	f[20] = 0x20; /* a fragment */
	CHECK_EQ(frame_payload(f, 98, &headers), 0);
}

/*
 * The sum of a datagram with its pseudo header, as its receiver computes it (RFC 8200, 8.1), a byte
 * at a time.
 */
static uint32_t sum6(const uint8_t *f, uint32_t payload)
{
	uint32_t sum = 17 + 8 + payload;

	for (unsigned i = 0; i < 32; i++)
		sum += (uint32_t)f[22 + i] << (i % 2 ? 0 : 8);
	for (unsigned i = 0; i < 8 + payload; i++)
		sum += (uint32_t)f[54 + i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* fd00::1 to fd00::2, port 5010 to 5010. */
static struct frame_address example6(void)
{
	return (struct frame_address){.ip6 = true,
				      .from_mac = {2, 0, 0, 0, 0, 1},
				      .to_mac = {2, 0, 0, 0, 0, 2},
				      .from_ip = {0xfd, [15] = 1},
				      .to_ip = {0xfd, [15] = 2},
				      .to_port = 5010};
}

/* The IPv4 header at that offset has this DSCP, and a sum that is right. */
static void check_dscp(const uint8_t *f, unsigned at, unsigned dscp)
{
	uint32_t sum = 0;

	for (unsigned i = at; i < at + 20; i += 2)
		sum += (uint32_t)f[i] << 8 | f[i + 1];
	CHECK_EQ((sum & 0xffff) + (sum >> 16), 0xffff);
	CHECK_EQ(f[at + 1], dscp << 2);
}

/* Of plain frames, of a bulk stream's, and of both headers of a tunnel. */
static void dscp(void)
{
	struct encap tunnel = {.kind = ENCAP_GTPU, .user = 1, .from = 0xc6120001, .to = 0xc6120002};
	struct frame_address a = {.to_port = 5010, .dscp = 46, .bulk_dscp = 10, .bulk_port = 5012};
	uint8_t f[200] = {0};
	uint32_t headers;

	frame_write(f, &a, 5011, 56, 0);
	check_dscp(f, 14, 46);
	CHECK_EQ(frame_payload(f, 98, &headers), 56);
	frame_write(f, &a, 5012, 56, 0);
	check_dscp(f, 14, 10);
	a.ip6 = true;
	frame_write(f, &a, 5010, 56, 0);
	CHECK(f[14] == 0x6b && f[15] == 0x80 && f[16] == 0); /* 46 << 2 is 0xb8 */
	CHECK_EQ(frame_payload(f, 118, &headers), 56);
	a.ip6 = false;
	a.encap = &tunnel;
	a.bulk_port = 0;
	frame_write(f, &a, 5012, 56, 0);
	check_dscp(f, 14, 46);
	check_dscp(f, ENCAP_GTPU_HEADERS - 28, 46);
}

static void frames6(void)
{
	static const uint8_t begin[] = {2,    0,    0,	  0, 0, 2, 2, 0, 0,  0,	 0,   1,
					0x86, 0xdd, 0x60, 0, 0, 0, 0, 9, 17, 64, 0xfd};
	struct frame_address a = example6();
	uint8_t f[200] = {0}, before[200];
	uint32_t headers;

	/*
	 * By hand: 2 * (fd00 + 1392) + 0001 + 0002 + 2 * 0009 + 0011 + 4100 = 2624a, folded 624c;
	 * its complement.
	 */
	f[62] = 'A';
	frame_write(f, &a, 5010, 1, 0);
	CHECK(memcmp(f, begin, sizeof(begin)) == 0);
	frame_finish(f, 62, 1);
	CHECK_EQ(f[60] << 8 | f[61], 0x9db3);
	for (unsigned n = 0; n <= 138; n++) {
		for (unsigned i = 0; i < n; i++)
			f[62 + i] = (uint8_t)(i * 73 + n);
		frame_write(f, &a, 5013, n, 0);
		frame_finish(f, 62, n);
		CHECK_EQ(sum6(f, n), 0xffff);
		CHECK_EQ(frame_payload(f, 62 + n, &headers), n);
		CHECK_EQ(headers, 62);
		CHECK_EQ(frame_payload(f, 61 + n, &headers), 0);
	}
	memcpy(before, f, sizeof(f));
	frame_turn(f, 62);
	CHECK(f[5] == 1 && f[11] == 2 && f[37] == 2 && f[53] == 1 && f[55] == (5010 & 255) &&
	      f[57] == (5013 & 255));
	CHECK_EQ(sum6(f, 138), 0xffff);
	frame_turn(f, 62);
	CHECK(memcmp(f, before, sizeof(f)) == 0);
	f[20] = 0; /* hop-by-hop options */
	CHECK_EQ(frame_payload(f, 200, &headers), 0);
}

/* A sum of 0 is sent as its other form: 0 would say that there is none. */
static void no_zero_sum(void)
{
	struct frame_address a = example6();
	uint8_t f[64] = {0};
	uint32_t sum;

	frame_write(f, &a, 5010, 2, 0);
	sum = 0xffff - sum6(f, 2);
	f[62] = (uint8_t)(sum >> 8);
	f[63] = (uint8_t)sum;
	frame_finish(f, 62, 2);
	CHECK_EQ(f[60] << 8 | f[61], 0xffff);
	CHECK_EQ(sum6(f, 2), 0xffff);
}

/* A frame of a user with an address of his own, in each encapsulation. */
static uint32_t encapsulated(uint8_t *f, const struct encap *encap, uint16_t port, uint32_t payload)
{
	struct frame_address a = {.from_mac = {2, 0, 0, 0, 0, 1},
				  .to_mac = {2, 0, 0, 0, 0, 2},
				  .from_ip = {10, 60, 0, 1},
				  .to_ip = {192, 0, 2, 2},
				  .to_port = 5010,
				  .encap = encap};

	frame_write(f, &a, port, payload, port - 5010u);
	return frame_headers_to(&a);
}

static void one_encapsulation(const char *text, uint32_t bytes)
{
	struct encap encap = {.spread = ENCAP_SPREAD_FROM};
	uint8_t f[200] = {0}, before[200];
	uint32_t headers, n;

	CHECK(encap_read(text, &encap) == NULL);
	CHECK_EQ(encapsulated(f, &encap, 5013, 18), bytes);
	CHECK_EQ(frame_payload(f, bytes + 18, &headers), 18);
	CHECK_EQ(headers, bytes);
	CHECK_EQ(f[bytes - 28 + 15], 4); /* the source address of flow 3 */
	/* Whatever it is cut to, it is not taken, and nothing beyond the end is looked at. */
	for (n = 0; n < bytes + 18; n++) {
		uint8_t *part = malloc(n + 1);

		CHECK(part != NULL);
		memcpy(part, f, n);
		CHECK_EQ(frame_payload(part, n, &headers), 0);
		free(part);
	}
	memcpy(before, f, sizeof(f));
	frame_turn(f, bytes);
	CHECK(f[5] == 1 && f[11] == 2 && f[bytes - 28 + 19] == 4 && f[bytes - 28 + 12] == 192 &&
	      f[bytes - 6] == (5013 >> 8) && f[bytes - 5] == (5013 & 255));
	CHECK_EQ(frame_payload(f, bytes + 18, &headers), 18);
	CHECK_EQ(headers, bytes);
	frame_turn(f, bytes);
	CHECK(memcmp(f, before, sizeof(f)) == 0);
}

static const char gre_mpls[] = "gre-mpls:label=3,key=70000,from=198.18.1.2,to=198.18.1.1";
static const char uplink[] = "gtpu:teid=9,from=198.18.0.2,to=198.18.0.1,pdu=up,qfi=9";

static void encapsulations(void)
{
	one_encapsulation("qinq:s=128,c=1", 50);
	one_encapsulation(gre_mpls, 74);
	one_encapsulation("gtpu:teid=4294967290,from=198.18.0.2,to=198.18.0.1", 78);
	one_encapsulation(uplink, 86);
	one_encapsulation("gtpu:teid=9,from=198.18.0.2,to=198.18.0.1,qfi=0,pdu=down", 86);
	one_encapsulation("gtpu:teid=1,from=198.18.0.2,to=198.18.0.1,tunnels=10000,nru=dl", 93);
}

/* Put four bytes of numbers into a frame of GTP-U, as TS 29.281 (5.1) has them. */
static void number(uint8_t *f, uint8_t flags, uint32_t length)
{
	memmove(f + 54, f + 50, length - 50);
	memcpy(f + 50, (const uint8_t[]){0x12, 0x34, 0x56, 0}, 4);
	f[42] |= flags;
	f[17] += 4; /* the outer packet's length */
	f[39] += 4; /* the datagram's */
	f[45] += 4; /* GTP-U's */
}

/* Real GSNs number their packets. What the numbers are does not matter. */
static void numbered(void)
{
	static const uint8_t flags[] = {2, 1, 3};
	struct encap encap = {.spread = ENCAP_SPREAD_FROM};

	CHECK(encap_read("gtpu:teid=9,from=198.18.0.2,to=198.18.0.1", &encap) == NULL);
	for (unsigned i = 0; i < sizeof(flags); i++) {
		uint8_t f[200] = {0}, before[200];
		uint32_t headers;

		CHECK_EQ(encapsulated(f, &encap, 5013, 18), 78);
		number(f, flags[i], 96);
		CHECK_EQ(frame_payload(f, 100, &headers), 18);
		CHECK_EQ(headers, 82);
		CHECK_EQ(frame_payload(f, 99, &headers), 0);
		memcpy(before, f, sizeof(f));
		frame_turn(f, 82);
		CHECK(f[5] == 1 && f[11] == 2 && f[54 + 19] == 4 && f[51] == 0x34);
		CHECK_EQ(frame_payload(f, 100, &headers), 18);
		frame_turn(f, 82);
		CHECK(memcmp(f, before, sizeof(f)) == 0);
	}
}

/* The same before a container: what the flags do not ask for is not looked at. */
static void numbered_container(void)
{
	struct encap encap = {0};
	uint8_t f[200] = {0};
	uint32_t headers;

	CHECK(encap_read(uplink, &encap) == NULL);
	CHECK_EQ(encapsulated(f, &encap, 5013, 18), 86);
	f[42] |= 2;
	f[51] = 7;
	CHECK_EQ(frame_payload(f, 104, &headers), 18);
	CHECK_EQ(headers, 86);
	f[42] = 0x3c; /* a flag that is spare */
	CHECK_EQ(frame_payload(f, 104, &headers), 62);
}

/* One byte of the headers is another. */
static void wrong(const char *text, unsigned at, uint8_t value, uint32_t payload)
{
	uint8_t f[200] = {0};
	struct encap encap = {0};
	uint32_t headers, bytes;

	CHECK(encap_read(text, &encap) == NULL);
	bytes = encapsulated(f, &encap, 5010, 18);
	CHECK(f[at] != value);
	f[at] = value;
	CHECK_EQ(frame_payload(f, bytes + 18, &headers), payload);
}

static void wrong_encapsulations(void)
{
	wrong("qinq:s=1,c=1", 16, 0x88, 0); /* two S-tags */
	wrong("qinq:s=1,c=1", 20, 0x86, 0); /* what is inside */
	wrong("qinq:s=1,c=1", 25, 0xff, 0); /* longer than the frame */
	wrong(gre_mpls, 16, 0x30, 0);	    /* another label below */
	wrong(gre_mpls, 21, 0xff, 0);	    /* the outer length */
	wrong(gre_mpls, 24, 0x20, 0);	    /* a fragment */
	wrong(gre_mpls, 27, 17, 0);	    /* no GRE */
	wrong(gre_mpls, 38, 0x30, 0);	    /* with a sequence number */
	wrong(gre_mpls, 49, 45, 0);	    /* the tunnel has more than the packet */
	/* What is no packet in GTP-U is a datagram to its port. */
	wrong(uplink, 42, 0x54, 62); /* version 2 */
	wrong(uplink, 43, 1, 62);    /* an echo request */
	wrong(uplink, 45, 0, 62);    /* GTP-U's length */
	wrong(uplink, 53, 0xc0, 62); /* another extension header */
	wrong(uplink, 54, 2, 62);    /* a longer one */
	wrong(uplink, 57, 0x85, 62); /* one more */
	wrong(uplink, 39, 0x3f, 0);  /* UDP's length */
}

static bool alike(const struct frame_seen *seen, const uint8_t *frame, uint32_t length)
{
	const struct frame_like like = frame_like(seen);

	return frame_is_like(&like, frame, length);
}

/* What a port remembers changes no byte of what it writes, and no answer about what it reads. */
static void remembered(const struct frame_address *a)
{
	struct frame_template template = {0};
	struct frame_seen seen = {0};
	uint8_t want[256] = {0}, got[256] = {0};
	uint32_t headers = frame_headers_to(a), other, payload = 0;

	for (unsigned i = 0; i < 40; i++) {
		uint16_t from_port = (uint16_t)(FRAME_PORT + i / 2 % 3);
		struct frame_flow flow = {.template = &template,
					  .address = a,
					  .from_port = from_port,
					  .varies = frame_varies(a),
					  .number = i / 4};
		struct frame_head head;

		payload = 18 + i / 8 % 5;
		frame_write(want, a, from_port, payload, i / 4);
		head = frame_head(&flow, payload, 0);
		frame_put(&head, got + headers);
		CHECK(memcmp(got, want, headers) == 0);
		CHECK_EQ(frame_find(&seen, got, headers + payload, &other), payload);
		CHECK_EQ(other, headers);
		CHECK_EQ(alike(&seen, got, headers + payload), headers == FRAME_HEADERS);
		CHECK(!alike(&seen, got, headers + payload + 1));
	}
	for (unsigned i = 0; i < headers; i++) {
		uint32_t found;

		CHECK_EQ(frame_find(&seen, got, headers + payload, &other), payload);
		got[i] ^= 0x41;
		CHECK(!alike(&seen, got, headers + payload));
		found = frame_find(&seen, got, headers + payload, &other);
		CHECK_EQ(found, frame_payload(got, headers + payload, &headers));
		CHECK_EQ(other, headers);
		got[i] ^= 0x41;
		headers = frame_headers_to(a);
	}
	CHECK_EQ(frame_find(&seen, got, headers + payload, &other), payload);
	CHECK_EQ(frame_find(&seen, got, headers + payload - 1, &other),
		 frame_payload(got, headers + payload - 1, &headers));
	CHECK_EQ(frame_find(&seen, got, 0, &other), 0);
}

/* All kinds of headers are remembered by one port, one after the other. */
static void all_remembered(void)
{
	static const struct encap encaps[] = {
		{.kind = ENCAP_QINQ, .tag = 1, .user = 2},
		{.kind = ENCAP_GRE_MPLS, .tag = 3, .user = 4, .from = 5, .to = 6},
		{.kind = ENCAP_GTPU, .user = 7, .from = 8, .to = 9},
		{.kind = ENCAP_GTPU, .user = 7, .container = true, .qfi = 9},
		{.kind = ENCAP_GTPU, .user = 7, .tunnels = 3, .nru = true},
		{.spread = ENCAP_SPREAD_TO}};
	struct frame_address plain = {.to_port = FRAME_PORT}, a = example6();

	remembered(&a);
	remembered(&plain);
	for (unsigned i = 0; i < sizeof(encaps) / sizeof(*encaps); i++) {
		a = plain;
		a.encap = &encaps[i];
		remembered(&a);
	}
}

/* A plain datagram to GTP-U's port, and a tunnel's packet with the same first headers. */
static void same_outer_headers(void)
{
	static const struct encap tunnel = {.kind = ENCAP_GTPU, .user = 7};
	struct frame_address a = {.to_port = FRAME_PORT, .encap = &tunnel};
	struct frame_seen seen = {0};
	uint8_t frame[120] = {0};
	uint32_t headers;

	frame_write(frame, &a, FRAME_PORT, 20, 0);
	frame[FRAME_HEADERS + 1] = 1;	 /* an echo request: not a tunnel's */
	CHECK(!alike(&seen, frame, 98)); /* nothing was seen yet */
	CHECK_EQ(frame_find(&seen, frame, 98, &headers), 56);
	CHECK_EQ(headers, FRAME_HEADERS);
	CHECK(!alike(&seen, frame, 98));
	frame[FRAME_HEADERS + 1] = 255;
	CHECK_EQ(frame_find(&seen, frame, 98, &headers), 20);
	CHECK_EQ(headers, ENCAP_GTPU_HEADERS);
}

static void encapsulation_options(void)
{
	static const char *const bad[] = {"qinq",
					  "qinq:",
					  "qinq:s=1",
					  "qinq:s=1,c=0",
					  "qinq:s=1,c=4095",
					  "qinq:s=1,c=1,c=1",
					  "qinq:s=1,c=1,key=1",
					  "qinq:s,c=1",
					  "vlan:s=1",
					  "gre-mpls:label=1048576,key=0,from=1.1.1.1,to=1.1.1.2",
					  "gre-mpls:label=3,key=4294967296,from=1.1.1.1,to=1.1.1.2",
					  "gre-mpls:label=3,key=0,from=1.1.1,to=1.1.1.2",
					  "gtpu:teid=1,from=1.1.1.1",
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,pdu=up",
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,qfi=9",
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,pdu=across,qfi=9",
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,pdu=up,qfi=64",
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,tunnels=0",
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,tunnels=1000001",
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,nru=dl",
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,tunnels=2,nru=ul",
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,tunnels=2,nru=dl,"
					  "pdu=down,qfi=1"};
	struct encap encap = {0};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(encap_read(bad[i], &encap) != NULL);
	CHECK(encap_read("qinq:s=4094,c=4000", &encap) == NULL && encap.tag == 4094 &&
	      encap.user == 4000);
	CHECK(encap_check_flows(&encap, 95) == NULL && encap_check_flows(&encap, 96) != NULL);
	CHECK(encap_read("gtpu:teid=4294957296,from=1.1.1.1,to=1.1.1.2,tunnels=10000", &encap) ==
	      NULL);
	CHECK(encap_check_flows(&encap, 256) == NULL);
	encap.tunnels++;
	CHECK(encap_check_flows(&encap, 1) != NULL);
}

/* Each packet of a flow is of the next tunnel, and the packets of a tunnel are counted. */
static void tunnels(void)
{
	struct encap encap = {.spread = ENCAP_SPREAD_FROM};
	struct frame_address a = {
		.from_ip = {10, 60, 0, 1}, .to_port = FRAME_PORT, .encap = &encap};
	struct frame_template template = {0};
	uint8_t frames[7][200] = {0};
	struct io_buf bufs[7];
	struct frame_flow flow = {&template, &a, FRAME_PORT, true, 8};
	struct packet packet = {.type = PACKET_DATA, .stream = 1};

	CHECK(encap_read("gtpu:teid=9,from=1.1.1.1,to=1.1.1.2,tunnels=3,nru=dl", &encap) == NULL);
	CHECK(frame_varies(&a));
	for (unsigned i = 0; i < 7; i++)
		bufs[i] = (struct io_buf){.data = frames[i] + ENCAP_NRU_HEADERS,
					  .length = PACKET_SHORT + i / 2};
	packet_write_frames(&packet, bufs, 7, &flow);
	for (unsigned i = 0; i < 7; i++) {
		const uint8_t *gtp = frames[i] + FRAME_HEADERS, *ip = gtp + 23;
		uint32_t headers, user = (8 + i) % 3, number = (8 + i) / 3;

		CHECK_EQ(frame_payload(frames[i], ENCAP_NRU_HEADERS + PACKET_SHORT + i / 2,
				       &headers),
			 PACKET_SHORT + i / 2);
		CHECK_EQ(headers, ENCAP_NRU_HEADERS);
		CHECK_EQ(gtp[7], 9 + user);
		CHECK_EQ(gtp[17], number);
		CHECK_EQ(gtp[22], number);
		CHECK_EQ(ip[15], 1 + user);
	}
}

int main(void)
{
	frames();
	dscp();
	frames6();
	no_zero_sum();
	encapsulations();
	wrong_encapsulations();
	numbered();
	numbered_container();
	all_remembered();
	same_outer_headers();
	encapsulation_options();
	tunnels();
	return 0;
}
