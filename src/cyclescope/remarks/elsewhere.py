"""What is said of a store's experiments and numbers as another backend has them."""

from __future__ import annotations

from cyclescope.remarks.remark import Meaning


class NotCompared(Meaning):
    """Why something of a store is not compared."""

    READING = "the reading is {}"
    SECOND_LOOK = "it is of a second look, or of an earlier version"
    PLANNED_ANEW = "it is not planned today as it was measured"
    INSTRUCTION_NOT_TAKEN = "llvm-mca does not take an instruction of it"
    NOT_TAKEN = "llvm-mca does not take it"
    UNPLANNED = "no instance of it is planned today"
    NO_COST = "the model has no cost of it"
    TIMES_ALONE = "the backend says what kernels take, not what instructions are made of"
    UNSURE = "its ports are not told with high or medium confidence"


class Counts(Meaning):
    """What another backend counts."""

    MCA = (
        "llvm-mca has one number, NumMicroOpcodes, which is what its scheduling model dispatches: of AMD's "
        "cores a load and its operation are one, of Intel's two. It is held against both of the store's "
        "numbers. Ports are its pressure per resource; resources are more than ports."
    )
    NOTHING = "The backend counts nothing: it has times alone."
    MODEL = "The numbers and ports are those of the machine model that is simulated."
    EXTRACTED = (
        "The numbers and ports are those of the machine model that is simulated: uses of LLVM's resources, "
        "of which a load can take several (an address unit and a load unit)."
    )
