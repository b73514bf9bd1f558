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
	return (struct packet){.type = PACKET_DATA, .flags = PACKET_SUMMED, .flow = 7, .length = LENGTH, .stream = 0x01020304, .sequence = 0x1122334455667788,
			       .intended = 5, .sent = 6, .turned = 0};
}

static void round_trip(void)
{
	struct packet p = example(), q;
	static const uint8_t begin[] = {'D', 'G', 'E', 'N', 1, 1, 2, 0, 4, 3, 2, 1, 7, 0, LENGTH, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 5, 0};

	p.payload_sum = packet_fill(datagram, LENGTH, p.sequence);
	packet_write(datagram, &p);
	CHECK(memcmp(datagram, begin, sizeof(begin)) == 0);
	CHECK_EQ(packet_read(datagram, LENGTH, true, &q), PACKET_GOOD);
	CHECK(q.sequence == p.sequence && q.stream == p.stream && q.flow == 7 && q.intended == 5 && q.sent == 6 && q.payload_sum == p.payload_sum);
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
		CHECK_EQ(packet_read(datagram, n, true, &q), n < PACKET_HEADER ? PACKET_FOREIGN : PACKET_CORRUPT);
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
	bad[0].flags = 0; /* no sum where one is asked for */
	packet_write(datagram, &bad[0]);
	CHECK_EQ(packet_read(datagram, LENGTH, true, &q), PACKET_CORRUPT);
	CHECK_EQ(packet_read(datagram, LENGTH, false, &q), PACKET_GOOD);
}

static void frames(void)
{
	struct frame_address a = {.from_mac = {2, 0, 0, 0, 0, 1}, .to_mac = {2, 0, 0, 0, 0, 2}, .from_ip = {192, 0, 2, 1}, .to_ip = {192, 0, 2, 2}, .to_port = 5010};
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
	CHECK(f[5] == 1 && f[11] == 2 && f[29] == 2 && f[33] == 1 && f[35] == (5010 & 255) && f[37] == (5013 & 255));
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

/* The sum of a datagram with its pseudo header, as whoever receives it forms it: RFC 8200, 8.1, a byte at a time. */
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
	return (struct frame_address){.ip6 = true, .from_mac = {2, 0, 0, 0, 0, 1}, .to_mac = {2, 0, 0, 0, 0, 2}, .from_ip = {0xfd, [15] = 1},
				      .to_ip = {0xfd, [15] = 2}, .to_port = 5010};
}

static void frames6(void)
{
	static const uint8_t begin[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 9, 17, 64, 0xfd};
	struct frame_address a = example6();
	uint8_t f[200] = {0}, before[200];
	uint32_t headers;

	/* By hand: 2 * (fd00 + 1392) + 0001 + 0002 + 2 * 0009 + 0011 + 4100 = 2624a, folded 624c; its complement. */
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
	CHECK(f[5] == 1 && f[11] == 2 && f[37] == 2 && f[53] == 1 && f[55] == (5010 & 255) && f[57] == (5013 & 255));
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

int main(void)
{
	sums();
	round_trip();
	every_byte();
	nonsense();
	frames();
	frames6();
	no_zero_sum();
	return 0;
}
