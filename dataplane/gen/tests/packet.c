/* SPDX-License-Identifier: Apache-2.0 */
/* Packets and frames: known answers, and every change of a byte is noticed. */
#include "packet.h"

#include "crc32c.h"
#include "frame.h"
#include "support.h"

#define LENGTH 200u

static uint8_t datagram[LENGTH];

/* RFC 3720, B.4, and the check value of the polynomial. */
static void sums(void)
{
	uint8_t zeros[32] = {0}, ones[32], up[32];
	uint8_t odd[61];

	memset(ones, 0xff, sizeof(ones));
	for (unsigned i = 0; i < 32; i++)
		up[i] = (uint8_t)i;
	for (unsigned i = 0; i < sizeof(odd); i++)
		odd[i] = (uint8_t)(i * 37);
	CHECK_EQ(crc32c(zeros, 32), 0x8a9136aa);
	CHECK_EQ(crc32c(ones, 32), 0x62a8ab43);
	CHECK_EQ(crc32c(up, 32), 0x46dd794e);
	CHECK_EQ(crc32c("123456789", 9), 0xe3069283);
	CHECK_EQ(crc32c_portable("123456789", 9), 0xe3069283);
	for (size_t n = 0; n <= sizeof(odd); n++)
		CHECK_EQ(crc32c(odd, n), crc32c_portable(odd, n));
}

static struct packet example(void)
{
	return (struct packet){.type = PACKET_DATA,
			       .flags = PACKET_SUMMED,
			       .flow = 7,
			       .length = LENGTH,
			       .stream = 0x01020304,
			       .sequence = 0x1122334455667788,
			       .intended = 5,
			       .sent = 6,
			       .turned = 0};
}

static void round_trip(void)
{
	struct packet p = example(), q;
	static const uint8_t begin[] = {'D',  'G',  'E',  'N',	1,    1,      2, 0,    4,
					3,    2,    1,	  7,	0,    LENGTH, 0, 0x88, 0x77,
					0x66, 0x55, 0x44, 0x33, 0x22, 0x11,   5, 0};

	p.payload_sum = packet_fill(datagram, LENGTH, p.sequence);
	packet_write(datagram, &p);
	CHECK(memcmp(datagram, begin, sizeof(begin)) == 0);
	CHECK_EQ(packet_read(datagram, LENGTH, true, &q), PACKET_GOOD);
	CHECK(q.sequence == p.sequence && q.stream == p.stream && q.flow == 7 && q.intended == 5 &&
	      q.sent == 6 && q.payload_sum == p.payload_sum);
}

static void every_byte(void)
{
	struct packet q;

	for (unsigned i = 0; i < LENGTH; i++) {
		enum packet_verdict want = i < 4 ? PACKET_FOREIGN : PACKET_CORRUPT;

		datagram[i] ^= 0x10;
		CHECK_EQ(packet_read(datagram, LENGTH, true, &q), want);
		if (i >= PACKET_HEADER)
			CHECK_EQ(packet_read(datagram, LENGTH, false, &q), PACKET_GOOD);
		datagram[i] ^= 0x10;
	}
	for (unsigned n = 0; n < LENGTH; n++)
		CHECK_EQ(packet_read(datagram, n, true, &q),
			 n < PACKET_HEADER ? PACKET_FOREIGN : PACKET_CORRUPT);
}

/* Whole, and yet nothing that draygen sends. */
static void nonsense(void)
{
	struct packet bad[4], q;

	for (unsigned i = 0; i < 4; i++)
		bad[i] = example();
	bad[0].type = 9;
	bad[1].flow = PACKET_FLOWS;
	bad[2].stream = 0;
	bad[3].flags = 0x8000;
	for (unsigned i = 0; i < 4; i++) {
		packet_write(datagram, &bad[i]);
		CHECK_EQ(packet_read(datagram, LENGTH, false, &q), PACKET_FOREIGN);
	}
	bad[0] = example();
	bad[0].flags = 0; /* no sum if one is asked for */
	packet_write(datagram, &bad[0]);
	CHECK_EQ(packet_read(datagram, LENGTH, true, &q), PACKET_CORRUPT);
	CHECK_EQ(packet_read(datagram, LENGTH, false, &q), PACKET_GOOD);
}

/* A warm-up packet, 5001 ns late, which 5 bits and 11 give as 1251 * 2^2. */
static struct packet short_example(uint16_t length)
{
	return (struct packet){.type = PACKET_DATA,
			       .flags = PACKET_WARMUP,
			       .flow = 7,
			       .length = length,
			       .stream = 0x01020304,
			       .sequence = 0x1122334455667788,
			       .intended = 0xffff123456789abc - 5001,
			       .sent = 0xffff123456789abc};
}

static void short_round_trip(void)
{
	static const uint8_t want[] = {0xdc, 0x31, 4,	 7,    0x88, 0x77, 0x66, 0x55, 0xbc,
				       0x9a, 0x78, 0x56, 0x34, 0x12, 0xe3, 0x14, 0x2f, 0xf5};
	struct packet p = short_example(PACKET_SHORT), q;

	CHECK(packet_is_short(&p));
	packet_write(datagram, &p);
	CHECK(memcmp(datagram, want, sizeof(want)) == 0);
	CHECK_EQ(packet_read(datagram, PACKET_SHORT, true, &q), PACKET_GOOD);
	CHECK(packet_is_short(&q) && q.type == PACKET_DATA && q.flags == PACKET_WARMUP &&
	      q.flow == 7 && q.stream == 4 && q.sequence == 0x55667788);
	CHECK(q.sent == 0x123456789abc && q.sent - q.intended == 5004);
	packet_complete(&q, 0xffff1234567fffff, 0x1122334455667000);
	CHECK(q.sent == p.sent && q.sent - q.intended == 5004);
	CHECK_EQ(q.sequence, 0x55667788); /* of warm-up */
	q.flags = 0;
	packet_complete(&q, 0xffff1234567fffff, 0x1122334455667000);
	CHECK_EQ(q.sequence, p.sequence);
	q.type = PACKET_REPLY;
	packet_write(datagram, &q);
	CHECK_EQ(datagram[1], 0x23);
	CHECK(datagram[14] == 0xe3 && datagram[15] == 0x14); /* what was rounded once is exact */
}

/* The short header's sum is of everything, whether the padding is asked for or not. */
static void every_byte_of_short(void)
{
	struct packet q;

	for (uint16_t length = PACKET_SHORT; length < PACKET_HEADER; length++) {
		struct packet p = short_example(length);

		CHECK_EQ(packet_fill(datagram, length, p.sequence), 0);
		packet_write(datagram, &p);
		CHECK_EQ(packet_read(datagram, length, true, &q), PACKET_GOOD);
		CHECK_EQ(q.length, length);
		for (unsigned i = 0; i < length; i++) {
			datagram[i] ^= 0x80;
			CHECK_EQ(packet_read(datagram, length, false, &q),
				 i < 2 ? PACKET_FOREIGN : PACKET_CORRUPT);
			datagram[i] ^= 0x80;
		}
		CHECK_EQ(packet_read(datagram, length - 1u, false, &q),
			 length == PACKET_SHORT ? PACKET_FOREIGN : PACKET_CORRUPT);
	}
	for (unsigned kind = 0; kind < 256; kind++) {
		datagram[1] = (uint8_t)kind;
		if (kind != 0x21 && kind != 0x23 && kind != 0x31 && kind != 0x33)
			CHECK_EQ(packet_read(datagram, 55, false, &q),
				 PACKET_FOREIGN); /* an end, or a version to come */
	}
}

/* What is read is never less late than it was, and by a thousandth more at most. */
static void lateness(void)
{
	static const uint64_t most = 2047ull << 31;
	struct packet p = short_example(PACKET_SHORT), q;

	for (uint64_t late = 0; late <= most; late += 1 + late / 97) {
		p.intended = p.sent - late;
		packet_write(datagram, &p);
		CHECK_EQ(packet_read(datagram, PACKET_SHORT, false, &q), PACKET_GOOD);
		CHECK(q.sent - q.intended >= late && q.sent - q.intended - late <= late / 1024);
	}
	p.intended = p.sent - 2 * most;
	packet_write(datagram, &p);
	CHECK_EQ(packet_read(datagram, PACKET_SHORT, false, &q), PACKET_GOOD);
	CHECK_EQ(q.sent - q.intended, most);
}

/* Numbers and times come whole from what is left of them, around each wrap. */
static void complete(void)
{
	static const struct {
		uint64_t next, sequence;
	} numbers[] = {{0, 0},
		       {0, 3000000000},
		       {5, 2},
		       {5, 0xffffffff},
		       {1ull << 32, 0xfffffff0},
		       {(1ull << 32) - 5, (1ull << 32) + 7},
		       {7ull << 33, (7ull << 33) - 1},
		       {10, 2000000000},
		       {3000000000, 4}};
	struct packet p = short_example(PACKET_SHORT);

	p.flags = 0;
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		p.sequence = numbers[i].sequence & 0xffffffff;
		packet_complete(&p, 0, numbers[i].next);
		CHECK_EQ(p.sequence,
			 numbers[i].next == 3000000000 ? (1ull << 32) + 4 : numbers[i].sequence);
	}
	for (uint64_t now = 3ull << 48, i = 0; i < 4; i++, now += 1 - (i == 1 ? 1000 : 0)) {
		p.sent = (now - 700) & 0xffffffffffff;
		p.intended = p.sent - 30;
		packet_complete(&p, now, 0);
		CHECK(p.sent == now - 700 && p.intended == now - 730);
	}
	p.sent = 5; /* sent after now: it stays so, to be noticed */
	p.intended = 5;
	packet_complete(&p, (3ull << 48) - 5, 0);
	CHECK(p.sent == (3ull << 48) + 5);
	p.length = PACKET_HEADER;
	p.sequence = 9;
	packet_complete(&p, 0, 1ull << 40);
	CHECK_EQ(p.sequence, 9);
}

static void frames(void)
{
	struct frame_address a = {.from_mac = {2, 0, 0, 0, 0, 1},
				  .to_mac = {2, 0, 0, 0, 0, 2},
				  .from_ip = {192, 0, 2, 1},
				  .to_ip = {192, 0, 2, 2},
				  .to_port = 5010};
	uint8_t f[98], before[98];
	uint32_t sum = 0, headers;

	memset(f, 0, sizeof(f));
	frame_write(f, &a, 5013, 56);
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
	frame_write(f, &a, 5010, 1);
	CHECK(memcmp(f, begin, sizeof(begin)) == 0);
	frame_finish(f, 62, 1);
	CHECK_EQ(f[60] << 8 | f[61], 0x9db3);
	for (unsigned n = 0; n <= 138; n++) {
		for (unsigned i = 0; i < n; i++)
			f[62 + i] = (uint8_t)(i * 73 + n);
		frame_write(f, &a, 5013, n);
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

	frame_write(f, &a, 5010, 2);
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

	frame_write(f, &a, port, payload);
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
					  "gtpu:teid=1,from=1.1.1.1,to=1.1.1.2,pdu=up,qfi=64"};
	struct encap encap = {0};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(encap_read(bad[i], &encap) != NULL);
	CHECK(encap_read("qinq:s=4094,c=4000", &encap) == NULL && encap.tag == 4094 &&
	      encap.user == 4000);
	CHECK(encap_check_flows(&encap, 95) == NULL && encap_check_flows(&encap, 96) != NULL);
}

int main(void)
{
	sums();
	round_trip();
	every_byte();
	nonsense();
	short_round_trip();
	every_byte_of_short();
	lateness();
	complete();
	frames();
	frames6();
	no_zero_sum();
	encapsulations();
	wrong_encapsulations();
	encapsulation_options();
	return 0;
}
