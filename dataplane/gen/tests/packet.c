/* SPDX-License-Identifier: Apache-2.0 */
/* Packets and their runs: known answers, and every change of a byte is noticed. */
#include "packet.h"

#include "crc32c.h"
#include "support.h"

#define LENGTH 200u

static uint8_t datagram[LENGTH];

static void put(const struct packet *p, uint32_t payload_sum)
{
	struct io_buf buf = {.data = datagram, .length = p->length, .payload_sum = payload_sum};

	packet_write(p, &buf, 1);
}

static enum packet_verdict get(uint32_t length, bool check, struct packet *p)
{
	struct io_buf buf = {.data = datagram, .length = length};
	enum packet_verdict verdict;

	CHECK_EQ(packet_read(&buf, 1, check, p, &verdict), 1);
	return verdict;
}

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

	put(&p, packet_fill(datagram, LENGTH, p.sequence));
	CHECK(memcmp(datagram, begin, sizeof(begin)) == 0);
	CHECK_EQ(get(LENGTH, true, &q), PACKET_GOOD);
	CHECK(q.sequence == p.sequence && q.stream == p.stream && q.flow == 7 && q.intended == 5 &&
	      q.sent == 6);
}

static void every_byte(void)
{
	struct packet q;

	for (unsigned i = 0; i < LENGTH; i++) {
		enum packet_verdict want = i < 4 ? PACKET_FOREIGN : PACKET_CORRUPT;

		datagram[i] ^= 0x10;
		CHECK_EQ(get(LENGTH, true, &q), want);
		if (i >= PACKET_HEADER)
			CHECK_EQ(get(LENGTH, false, &q), PACKET_GOOD);
		datagram[i] ^= 0x10;
	}
	for (unsigned n = 0; n < LENGTH; n++)
		CHECK_EQ(get(n, true, &q), n < PACKET_HEADER ? PACKET_FOREIGN : PACKET_CORRUPT);
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
		put(&bad[i], 0);
		CHECK_EQ(get(LENGTH, false, &q), PACKET_FOREIGN);
	}
	bad[0] = example();
	bad[0].flags = 0; /* no sum if one is asked for */
	put(&bad[0], 0);
	CHECK_EQ(get(LENGTH, true, &q), PACKET_CORRUPT);
	CHECK_EQ(get(LENGTH, false, &q), PACKET_GOOD);
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
	put(&p, 0);
	CHECK(memcmp(datagram, want, sizeof(want)) == 0);
	CHECK_EQ(get(PACKET_SHORT, true, &q), PACKET_GOOD);
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
	put(&q, 0);
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
		put(&p, 0);
		CHECK_EQ(get(length, true, &q), PACKET_GOOD);
		CHECK_EQ(q.length, length);
		for (unsigned i = 0; i < length; i++) {
			datagram[i] ^= 0x80;
			CHECK_EQ(get(length, false, &q), i < 2 ? PACKET_FOREIGN : PACKET_CORRUPT);
			datagram[i] ^= 0x80;
		}
		CHECK_EQ(get(length - 1u, false, &q),
			 length == PACKET_SHORT ? PACKET_FOREIGN : PACKET_CORRUPT);
	}
	for (unsigned kind = 0; kind < 256; kind++) {
		datagram[1] = (uint8_t)kind;
		if (kind != 0x21 && kind != 0x23 && kind != 0x31 && kind != 0x33)
			CHECK_EQ(get(55, false, &q),
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
		put(&p, 0);
		CHECK_EQ(get(PACKET_SHORT, false, &q), PACKET_GOOD);
		CHECK(q.sent - q.intended >= late && q.sent - q.intended - late <= late / 1024);
	}
	p.intended = p.sent - 2 * most;
	put(&p, 0);
	CHECK_EQ(get(PACKET_SHORT, false, &q), PACKET_GOOD);
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

/*
 * From 65,536 bytes on the flow has one byte and the length three. A header says in one way only
 * how long its packet is.
 */
static void long_packets(void)
{
	static const uint32_t lengths[] = {65535, 65536, 115000, 4u << 20, PACKET_LONGEST};
	static uint8_t big[PACKET_LONGEST + 1];
	struct packet p = example(), q;
	struct io_buf buf = {.data = big};
	enum packet_verdict verdict;

	p.flow = 255;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		buf.length = lengths[i];
		buf.payload_sum = packet_fill(big, buf.length, p.sequence);
		packet_write(&p, &buf, 1);
		CHECK_EQ(big[4], i ? 2 : 1);
		CHECK_EQ(packet_read(&buf, 1, true, &q, &verdict), 1);
		CHECK_EQ(verdict, PACKET_GOOD);
		CHECK(q.length == buf.length && q.flow == 255 && q.stream == p.stream &&
		      q.sequence == p.sequence && q.flags == p.flags);
		big[buf.length - 1] ^= 1;
		packet_read(&buf, 1, true, &q, &verdict);
		CHECK_EQ(verdict, PACKET_CORRUPT);
		buf.length--; /* cut */
		packet_read(&buf, 1, false, &q, &verdict);
		CHECK_EQ(verdict, PACKET_CORRUPT);
	}
	CHECK(big[12] == 255 && big[13] == 0xff && big[14] == 0xff && big[15] == 0xff);
	buf.length = PACKET_LONGEST + 1;
	packet_read(&buf, 1, false, &q, &verdict);
	CHECK_EQ(verdict, PACKET_FOREIGN);
}

/* A short packet in the header of version 2, a version that does not exist, and each in a run. */
static void versions(void)
{
	struct packet p = example(), q;
	uint32_t sum;

	for (unsigned version = 0; version < 4; version++) {
		const uint8_t shape[] = {LENGTH, 0, 0};

		put(&p, packet_fill(datagram, LENGTH, p.sequence));
		datagram[4] = (uint8_t)version;
		if (version == 2)
			memcpy(datagram + 13, shape, sizeof(shape));
		sum = crc32c(datagram, 52);
		memcpy(datagram + 52, &sum, sizeof(sum));
		CHECK_EQ(get(LENGTH, true, &q), version == 1 ? PACKET_GOOD : PACKET_FOREIGN);
	}
}

#define RUN 5u

static uint8_t room[RUN][LENGTH];
static struct io_buf bufs[RUN];

/* A run of packets of this many bytes, with payloads of their own. */
static struct packet write_a_run(uint32_t length)
{
	struct packet p = length < PACKET_HEADER ? short_example((uint16_t)length) : example();

	p.sequence = 0x11223344fffffffe; /* the short one's number wraps on the way */
	for (unsigned i = 0; i < RUN; i++) {
		bufs[i] = (struct io_buf){.data = room[i], .length = length, .headers = 42};
		bufs[i].payload_sum = packet_fill(room[i], length, p.sequence + i);
	}
	packet_write(&p, bufs, RUN);
	return p;
}

static unsigned run_of(unsigned n, struct packet *first)
{
	enum packet_verdict verdict;
	unsigned run = packet_read(bufs, n, true, first, &verdict);

	CHECK_EQ(verdict, PACKET_GOOD);
	return run;
}

/* Each packet of a run is what it would be alone. */
static void runs(void)
{
	static const uint32_t lengths[] = {PACKET_SHORT, 22, 40, PACKET_HEADER, LENGTH};

	for (unsigned k = 0; k < 5; k++) {
		struct packet p = write_a_run(lengths[k]), q;

		CHECK_EQ(run_of(RUN, &q), RUN);
		CHECK(p.sent == q.sent || packet_is_short(&q));
		CHECK_EQ(run_of(2, &q), 2);
		for (unsigned i = 0; i < RUN; i++, p.sequence++) {
			memcpy(datagram, room[i], sizeof(datagram));
			CHECK_EQ(get(lengths[k], true, &q), PACKET_GOOD);
			CHECK_EQ((uint32_t)q.sequence, (uint32_t)p.sequence);
			p.length = (uint16_t)lengths[k];
			put(&p, bufs[i].payload_sum);
			CHECK(memcmp(datagram, room[i], lengths[k]) == 0);
		}
	}
}

/* What differs, or is damaged, ends a run: no byte is taken on trust. */
static void ends_of_runs(void)
{
	static const uint32_t lengths[] = {PACKET_SHORT, 22, 40, PACKET_HEADER, LENGTH};
	struct packet p, q;

	for (unsigned k = 0; k < 5; k++) {
		for (unsigned i = 0; i < lengths[k]; i++) {
			write_a_run(lengths[k]);
			room[3][i] ^= 0x10;
			CHECK_EQ(run_of(RUN, &q), 3);
		}
		p = write_a_run(lengths[k]);
		p.sequence += 9;
		packet_write(&p, &bufs[2], 1);
		CHECK_EQ(run_of(RUN, &q), 2);
		p.sequence -= 7;
		p.sent++;
		packet_write(&p, &bufs[2], 1);
		CHECK_EQ(run_of(RUN, &q), 2);
		p.sent--;
		packet_write(&p, &bufs[2], 1);
		CHECK_EQ(run_of(RUN, &q), RUN);
		bufs[4].headers++;
		CHECK_EQ(run_of(RUN, &q), 4);
		bufs[1].length--;
		CHECK_EQ(run_of(RUN, &q), 1);
	}
	p = write_a_run(LENGTH);
	p.type = PACKET_END;
	packet_write(&p, bufs, RUN);
	CHECK_EQ(run_of(RUN, &q), 1); /* each says how many were sent */
}

/* One burst has packets of all sizes. */
static void mixed_run(void)
{
	struct packet p = example(), q;

	write_a_run(LENGTH);
	p.flags = 0;
	bufs[1].length = PACKET_SHORT;
	bufs[3].length = PACKET_HEADER;
	packet_write(&p, bufs, RUN);
	for (unsigned i = 0; i < RUN; i++) {
		memcpy(datagram, room[i], sizeof(datagram));
		CHECK_EQ(get(bufs[i].length, false, &q), PACKET_GOOD);
		CHECK_EQ((uint32_t)q.sequence, (uint32_t)p.sequence + i);
		CHECK_EQ(q.length, bufs[i].length);
	}
}

/* What a buffer held is not sent after a short header, and no byte beyond it changes. */
static void cleared(void)
{
	for (uint32_t length = PACKET_SHORT; length < PACKET_HEADER; length++) {
		struct packet p = short_example((uint16_t)length), q;

		p.flags &= (uint16_t)~PACKET_SUMMED;
		for (unsigned i = 0; i < RUN; i++) {
			memset(room[i], 0xaa, LENGTH);
			bufs[i] = (struct io_buf){.data = room[i], .length = length};
		}
		packet_write(&p, bufs, RUN);
		CHECK_EQ(run_of(RUN, &q), RUN);
		for (unsigned i = 0; i < RUN; i++)
			for (unsigned k = PACKET_SHORT; k < LENGTH; k++)
				CHECK_EQ(room[i][k], k < length ? 0 : 0xaa);
	}
}

/* A reply keeps what came after the short header. */
static void kept(void)
{
	struct packet p = short_example(40), q;

	p.type = PACKET_REPLY;
	p.flags &= (uint16_t)~PACKET_SUMMED;
	memset(room[0], 0xaa, LENGTH);
	bufs[0] = (struct io_buf){.data = room[0], .length = 40};
	packet_write(&p, bufs, 1);
	CHECK_EQ(run_of(1, &q), 1);
	CHECK_EQ(room[0][PACKET_SHORT], 0xaa);
	CHECK_EQ(room[0][39], 0xaa);
}

/* With the headers of frames before them: of one address, one flow, and several lengths. */
static void in_frames(const struct frame_address *address)
{
	static const uint32_t lengths[] = {PACKET_SHORT, 22, 22, PACKET_HEADER, 40};
	static uint8_t frames[RUN][256];
	struct frame_template template = {0};
	const struct frame_flow flow = {.template = &template,
					.address = address,
					.from_port = FRAME_PORT + 3,
					.varies = frame_varies(address),
					.number = 5};
	const uint32_t headers = frame_headers_to(address);
	struct packet p = example();
	uint8_t want[256];

	p.flags = 0;
	for (unsigned i = 0; i < RUN; i++) {
		memset(frames[i], 0x55, sizeof(frames[i]));
		bufs[i] = (struct io_buf){.data = frames[i] + 1 + headers, .length = lengths[i]};
	}
	packet_write_frames(&p, bufs, RUN, &flow);
	for (unsigned i = 0; i < RUN; i++, p.sequence++) {
		struct io_buf alone = {.data = want + 1 + headers, .length = lengths[i]};

		memset(want, 0x55, sizeof(want));
		frame_write(want + 1, address, FRAME_PORT + 3, lengths[i], 5 + i);
		packet_write(&p, &alone, 1);
		CHECK(memcmp(frames[i], want, sizeof(want)) == 0);
	}
}

static void all_frames(void)
{
	static const struct encap tunnel = {.kind = ENCAP_GTPU, .user = 7},
				  tunnels = {.kind = ENCAP_GTPU, .tunnels = 3};
	struct frame_address a = {.to_port = FRAME_PORT, .to_mac = {2, 4, 6}};

	in_frames(&a);
	a.ip6 = true;
	in_frames(&a);
	a.ip6 = false;
	a.encap = &tunnel;
	in_frames(&a);
	a.encap = &tunnels;
	in_frames(&a);
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
	long_packets();
	versions();
	runs();
	ends_of_runs();
	mixed_run();
	cleared();
	kept();
	all_frames();
	return 0;
}
