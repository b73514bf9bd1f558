/* SPDX-License-Identifier: Apache-2.0 */
/* The load balancer: both directions of a user go to one worker, and users spread evenly. */
#include "files.h"
#include "function.h"
#include "ip4.h"

#define WORKERS 3u
#define USERS 3000u

static struct packet p;

static unsigned worker(const struct function *f, unsigned in, const uint8_t *frame, uint32_t length)
{
	packet_take(&p, frame, length, in, 64);
	CHECK_EQ(function_worker(f, &p, 1), 0);
	return function_worker(f, &p, WORKERS);
}

static void check_even(const unsigned count[WORKERS])
{
	for (unsigned i = 0; i < WORKERS; i++)
		CHECK(count[i] > USERS / WORKERS * 3 / 4 && count[i] < USERS / WORKERS * 5 / 4);
}

static void test_bng(void)
{
	struct function f = {.mode = MODE_BNG,
			     .ports = 2,
			     .bng = {.svlans = 128, .svlan_base = 1, .cvlan_base = 1}};
	unsigned count[WORKERS] = {0};

	CHECK_EQ(bng_open(&f.bng, 2), 0);
	for (uint32_t user = 0; user < USERS; user++) {
		uint8_t up[60] = {0}, down[60] = {0};
		unsigned to;

		put16(up + 12, TYPE_SVLAN);
		put16(up + 14, 1 + user / 256);
		put16(up + 16, TYPE_VLAN);
		put16(up + 18, 1 + user % 256);
		put16(down + 12, TYPE_MPLS);
		down[18] = 0x45;
		put32(down + 18 + IP4 + 4, user);
		to = worker(&f, 0, up, sizeof(up));
		CHECK_EQ(to, worker(&f, 1, down, sizeof(down)));
		count[to]++;
	}
	check_even(count);
	bng_close(&f.bng);
}

static void test_gtpu(void)
{
	struct function f = {
		.mode = MODE_GTPU,
		.ports = 2,
		.gtpu = {.count = USERS, .sessions = calloc(USERS, sizeof(struct session))}};
	unsigned count[WORKERS] = {0};

	CHECK(f.gtpu.sessions != NULL);
	for (uint32_t i = 0; i < USERS; i++)
		f.gtpu.sessions[i] = (struct session){.ue = 0x0a000000 + i, .here = 77 + i * 5};
	CHECK_EQ(gtpu_open(&f.gtpu), 0);
	for (uint32_t i = 0; i < USERS; i++) {
		uint8_t up[60] = {0}, down[60] = {0};
		unsigned to;

		put16(up + 12, TYPE_IP4);
		ip4_write(up + ETHERNET, 1, 2, PROTOCOL_UDP, 0, 26);
		put32(up + ETHERNET + IP4 + UDP + 4, 77 + i * 5);
		put16(down + 12, TYPE_IP4);
		ip4_write(down + ETHERNET, 3, 0x0a000000 + i, 6, 0, 26);
		to = worker(&f, 0, up, sizeof(up));
		CHECK_EQ(to, worker(&f, 1, down, sizeof(down)));
		count[to]++;
	}
	check_even(count);
	gtpu_close(&f.gtpu);
}

/* What cannot be told to be somebody's goes somewhere. */
static void test_anything(void)
{
	struct function f = {.mode = MODE_L3FWD, .ports = 2};
	uint8_t frame[60] = {0};

	for (unsigned length = 0; length <= sizeof(frame); length++)
		CHECK(worker(&f, 0, frame, length) < WORKERS);
}

int main(void)
{
	test_bng();
	test_gtpu();
	test_anything();
	return 0;
}
