/* Where objects of a class with __slots__ hold what a slot names. */

#ifndef QUERCUS_SLOTS_H
#define QUERCUS_SLOTS_H

#include <Python.h>
#include <structmember.h>

/* The offset of a slot in its objects; -1 where it is not one that holds an object. */
static inline Py_ssize_t slot_offset(PyObject *slot) {
    PyMemberDef *member;
    if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) return -1;
    member = ((PyMemberDescrObject *) slot)->d_member;
    return member->type == T_OBJECT_EX ? member->offset : -1;
}

/* Fill a slot of a new object, which holds nothing yet. */
static inline void fill_slot(PyObject *object, Py_ssize_t offset, PyObject *value) {
    Py_INCREF(value);
    *(PyObject **) ((char *) object + offset) = value;
}

#endif
