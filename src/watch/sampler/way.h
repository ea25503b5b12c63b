/*
 * How to look at threads that run: see look.h for what each proves.
 */
#ifndef FM_SAMPLER_WAY_H
#define FM_SAMPLER_WAY_H

enum fm_way {
    FM_WAY_DISPLACE, /* sit on the thread's processor */
    FM_WAY_STOP,     /* stop the thread by ptrace */
    FM_WAY_PLAIN,    /* just read: what is left when both are refused */
};

#endif
