/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of a shared-memory link: a million packets with every header and every byte checked,
 * and round trips.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker.h"
#include "support.h"

#define PACKETS "1000000"

static void all(void)
{
	struct child sink = START("sink", "--port", "dray:b", "--once", "--check", "--strict",
				  "--spin", "10us"),
		     sender;
	char *r;

	sender = START("send", "--port", "dray:a", "--rate", "max", "--packets", PACKETS, "--check",
		       "--strict", "--spin", "10us", "--size", "128");
	r = child_result(&sender, 0);
	CHECK_EQ(json_number(r, "sent"), atof(PACKETS));
	CHECK(strstr(r, "\"kind\":\"shm\""));
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), atof(PACKETS));
	CHECK_EQ(json_number(r, "violations"), 0);
	free(r);
}

/* Pings whose packets all come back, through a sink that reflects. Returns the result. */
#define PINGS(stream, packets, ...)                                                                \
	pings_of(START("ping", "--port", "dray:a", "--stream", stream, "--packets", packets,       \
		       "--timeout", "10s", "--strict", __VA_ARGS__),                               \
		 packets)

static char *pings_of(struct child ping, const char *packets)
{
	char *r = child_result(&ping, 0);

	CHECK_EQ(json_number(r, "received"), atof(packets));
	return r;
}

static void round_trips(void)
{
	struct child sink = START("sink", "--port", "dray:b", "--reflect", "--spin", "auto");
	char *r;

	r = PINGS("1", "1000", "--rate", "max", "--closed");
	CHECK_EQ(json_number(r, "foreign"), 0);
	free(r);
	/*
	 * No more than the link holds: replies that find it full are dropped, and a busy machine
	 * may delay the thread that waits for them.
	 */
	r = PINGS("2", "100", "--rate", "4kpps", "--catch-up", "60s", "--check", "--size", "imix");
	free(r);
	r = PINGS("3", "1000", "--rate", "max", "--closed", "--to", "[fd00::2]:5010", "--size",
		  "80", "--spin", "auto");
	CHECK_EQ(json_number(r, "received_bytes"), 80000);
	free(r);
	r = PINGS("4", "1000", "--rate", "max", "--closed", "--check", "--encap",
		  "gre-mpls:label=3,key=0,from=198.18.1.2,to=198.18.1.1", "--flows", "256",
		  "--size", "imix");
	CHECK_EQ(json_number(r, "received_bytes"), json_number(r, "sent_bytes"));
	free(r);
	kill(sink.pid, SIGTERM);
	r = child_result(&sink, 0);
	/* With the end packets; the last of each goes when its sender does. */
	CHECK(json_number(r, "reflected") + json_number(r, "reflect_dropped") >= 3128);
	CHECK(json_number(r, "reflected") + json_number(r, "reflect_dropped") <= 3132);
	CHECK_EQ(json_number(r, "violations"), 0);
	free(r);
}

/* Both ends in one thread: a full link is relieved by the thread that waits for room on it. */
static void one_thread(void)
{
	struct child loop =
		START("loop", "--port", "dray:a", "--to-port", "dray:b", "--both", "--packets",
		      "200000", "--rate", "max", "--burst", "1024", "--check", "--strict", "--size",
		      "imix", "--encap", "qinq:s=1,c=1", "--flows", "256", "--back-encap",
		      "gre-mpls:label=3,key=0,from=198.18.1.2,to=198.18.1.1");
	char *r = child_result(&loop, 0);

	CHECK_EQ(json_number(strstr(r, "\"forward\""), "sink.received"), 200000);
	CHECK_EQ(json_number(strstr(r, "\"backward\""), "sink.received"), 200000);
	CHECK(json_number(strstr(r, "\"forward\""), "sender.full") > 0);
	CHECK(json_number(strstr(r, "\"forward\""), "sender.full_ns") > 0);
	CHECK(json_number(strstr(r, "\"forward\""), "sender.full_ns") <
	      json_number(strstr(r, "\"forward\""), "sender.elapsed_ns"));
	free(r);
}

/* Fronthaul of 51 PRB, both ways. */
static void fronthaul(void)
{
	struct child loop = START("loop", "--port", "dray:a", "--to-port", "dray:b", "--both",
				  "--packets", "3000", "--fronthaul", "scs=30,prb=51,layers=4",
				  "--check", "--catch-up", "60s");
	char *r = child_result(&loop, 0);

	for (unsigned i = 0; i < 2; i++) {
		const char *way = strstr(r, i ? "\"backward\"" : "\"forward\"");

		CHECK_EQ(json_number(way, "sink.received"), 3000);
		CHECK_EQ(json_number(way, "sink.corrupt"), 0);
		CHECK_EQ(json_number(strstr(way, "c_plane"), "window_ns"), 144000);
	}
	free(r);
}

/* The peer is killed in the middle, and another takes its place: the sender goes on. */
static void successor(void)
{
	struct child sink = START("sink", "--port", "dray:b"), sender;
	double received = 0;
	char *r;

	sender = START("send", "--port", "dray:a", "--rate", "2kpps", "--catch-up", "1ms");
	usleep(200000);
	kill(sink.pid, SIGKILL);
	CHECK(child_line(&sink) == NULL);
	fclose(sink.out);
	CHECK(waitpid(sink.pid, NULL, 0) == sink.pid);
	sink = START("sink", "--port", "dray:b", "--once", "--interval", "20ms");
	while (received == 0) {
		r = child_line(&sink);
		CHECK(r != NULL);
		received = json_number(r, "received");
		free(r);
	}
	kill(sender.pid, SIGTERM);
	r = child_result(&sender, 0);
	CHECK(json_number(r, "sent") > 0);
	CHECK_EQ(json_number(r, "sent") + json_number(r, "unsent"), json_number(r, "scheduled"));
	free(r);
	r = child_result(&sink, 0);
	CHECK(json_number(r, "received") > 0);
	CHECK_EQ(json_number(r, "duplicates"), 0);
	free(r);
}

int main(int argc, char **argv)
{
	struct broker_options options = {
		.geometry = {.ring_size = 512, .pkt_slots = 256, .pkt_stride = 27 * 64}};
	struct broker *broker;

	test_program(argc, argv);
	broker = broker_start(&options);
	test_clean_up = broker_clean_up;
	setenv("DRAY_PORTS", broker_directory(broker), 1);
	all();
	round_trips();
	one_thread();
	fronthaul();
	successor();
	broker_stop(broker);
	return 0;
}
