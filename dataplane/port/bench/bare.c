/* SPDX-License-Identifier: Apache-2.0 */
/* Bare cache line, bare ring. */
#include "bare.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct word {
	_Alignas(128) _Atomic uint32_t value;
};

struct ring {
	struct word tail, head;
	_Alignas(128) uint8_t slots[BARE_SLOTS * BARE_STRIDE];
};

static struct ring rings[2];

struct job {
	uint64_t packets;
	uint64_t sum;
	struct windows windows;
};

static void reset(struct ring *r)
{
	atomic_store(&r->tail.value, 0);
	atomic_store(&r->head.value, 0);
}

static void ring_send(struct ring *r, uint64_t packets)
{
	uint32_t tail = 0, head = 0;

	for (uint64_t sent = 0; sent < packets; sent += BARE_BURST) {
		while (tail - head > BARE_SLOTS - BARE_BURST) {
			/* acquire: pairs with the release in ring_receive. */
			head = atomic_load_explicit(&r->head.value, memory_order_acquire);
			if (tail - head > BARE_SLOTS - BARE_BURST)
				clock_relax();
		}
		for (uint32_t i = 0; i < BARE_BURST; i++)
			bench_write64(r->slots + (size_t)(tail + i) % BARE_SLOTS * BARE_STRIDE, sent + i);
		tail += BARE_BURST;
		/* release: pairs with the acquire in ring_receive. */
		atomic_store_explicit(&r->tail.value, tail, memory_order_release);
	}
}

static void *ring_receive(void *argument)
{
	struct job *job = argument;
	struct ring *r = &rings[0];
	uint32_t head = 0, tail = 0;

	bench_pin(1);
	for (uint64_t got = 0; got < job->packets; got += BARE_BURST) {
		while (tail - head < BARE_BURST) {
			tail = atomic_load_explicit(&r->tail.value, memory_order_acquire);
			if (tail - head < BARE_BURST)
				clock_relax();
		}
		for (uint32_t i = 0; i < BARE_BURST; i++)
			job->sum += bench_read64(r->slots + (size_t)(head + i) % BARE_SLOTS * BARE_STRIDE);
		head += BARE_BURST;
		atomic_store_explicit(&r->head.value, head, memory_order_release);
		bench_window(&job->windows, got);
	}
	return NULL;
}

double bare_ring_rate(uint64_t packets)
{
	struct job job = {.packets = packets / BARE_BURST * BARE_BURST};
	pthread_t receiver;

	reset(&rings[0]);
	bench_pin(0);
	pthread_create(&receiver, NULL, ring_receive, &job);
	ring_send(&rings[0], job.packets);
	pthread_join(receiver, NULL);
	bench_keep(job.sum);
	return bench_rate(&job.windows);
}

double bare_copy_rate(uint64_t packets)
{
	struct windows windows = {0};

	bench_pin(0);
	for (uint64_t done = 0; done < packets; done++) {
		size_t at = (size_t)(done % BARE_SLOTS) * BARE_STRIDE;

		memcpy(rings[1].slots + at, rings[0].slots + at, 64);
		bench_keep((uintptr_t)rings[1].slots); /* each copy is made */
		bench_window(&windows, done);
	}
	return bench_rate(&windows);
}

static void put_one(struct ring *r, uint32_t at)
{
	bench_write64(r->slots + (size_t)at % BARE_SLOTS * BARE_STRIDE, at);
	atomic_store_explicit(&r->tail.value, at + 1, memory_order_release);
}

static uint64_t get_one(struct ring *r, uint32_t at)
{
	while (atomic_load_explicit(&r->tail.value, memory_order_acquire) == at)
		;
	return bench_read64(r->slots + (size_t)at % BARE_SLOTS * BARE_STRIDE);
}

static void *reflect(void *argument)
{
	struct job *job = argument;

	bench_pin(1);
	for (uint32_t i = 0; i < job->packets; i++) {
		job->sum += get_one(&rings[0], i);
		put_one(&rings[1], i);
	}
	return NULL;
}

void bare_ring_round_trips(uint32_t *ns, unsigned n)
{
	struct job job = {.packets = n};
	pthread_t reflector;
	uint64_t sum = 0;

	reset(&rings[0]);
	reset(&rings[1]);
	bench_pin(0);
	pthread_create(&reflector, NULL, reflect, &job);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t start = clock_ticks();

		put_one(&rings[0], i);
		sum += get_one(&rings[1], i);
		ns[i] = bench_ns(clock_ticks() - start);
	}
	pthread_join(reflector, NULL);
	bench_keep(sum + job.sum);
}

static struct word ping, pong;

static void *return_line(void *argument)
{
	struct job *job = argument;

	bench_pin(1);
	for (uint32_t i = 1; i <= job->packets; i++) {
		while (atomic_load_explicit(&ping.value, memory_order_acquire) != i)
			;
		atomic_store_explicit(&pong.value, i, memory_order_release);
	}
	return NULL;
}

double bare_line_round_trip(unsigned n)
{
	uint32_t *ns = calloc(n, sizeof(*ns));
	struct job job = {.packets = n};
	pthread_t other;
	double median;

	atomic_store(&ping.value, 0);
	atomic_store(&pong.value, 0);
	bench_pin(0);
	pthread_create(&other, NULL, return_line, &job);
	for (uint32_t i = 1; i <= n; i++) {
		uint64_t start = clock_ticks();

		atomic_store_explicit(&ping.value, i, memory_order_release);
		while (atomic_load_explicit(&pong.value, memory_order_acquire) != i)
			;
		ns[i - 1] = bench_ns(clock_ticks() - start);
	}
	pthread_join(other, NULL);
	median = bench_quantile(ns, n, 0.5);
	free(ns);
	return median;
}
