"""Models of data: fields with types, validation and conversion"""


class ValidationError(ValueError):
    pass


class BaseType:
    MESSAGES = {"required": "This field is required.", "choices": "Value must be one of {0}."}

    def __init__(self, required=False, choices=None, serialized_name=None, metadata=None):
        self.required, self.choices = required, choices
        self.serialized_name, self.metadata = serialized_name, metadata or {}
        self.messages = dict(self.MESSAGES)
        self.validators = [self.check_required, self.check_choices]
        self.name = self.owner_model = None

    def _setup(self, field_name, owner_model):
        self.name, self.owner_model = field_name, owner_model

    def convert(self, value):
        return value

    def check_required(self, value):
        if self.required and value is None:
            raise ValidationError(self.messages["required"])

    def check_choices(self, value):
        if self.choices is not None and value not in self.choices:
            raise ValidationError(self.messages["choices"].format(self.choices))

    def validate(self, value):
        for validator in self.validators:
            validator(value)
        return self.convert(value)


class StringType(BaseType):
    def convert(self, value):
        return None if value is None else str(value)


class FloatType(BaseType):
    MESSAGES = {**BaseType.MESSAGES, "convert": "Value is not a number."}

    def convert(self, value):
        try:
            return None if value is None else float(value)
        except ValueError:
            raise ValidationError(self.messages["convert"]) from None


class FieldDescriptor:
    def __init__(self, name):
        self.name = name

    def __get__(self, instance, cls):
        return cls._fields[self.name] if instance is None else instance._data.get(self.name)

    def __set__(self, instance, value):
        instance._data[self.name] = value


class ModelMeta(type):
    def __new__(mcs, name, bases, attrs):
        fields = {}
        for base in reversed(bases):
            fields.update(getattr(base, "_fields", {}))
        fields.update({key: value for key, value in attrs.items() if isinstance(value, BaseType)})
        attrs.update({key: FieldDescriptor(key) for key in fields}, _fields=fields)
        klass = super().__new__(mcs, name, bases, attrs)
        for key, field in fields.items():
            field._setup(key, klass)
        # Register class on ancestor models
        klass._subclasses = []
        for base in klass.__mro__[1:]:
            if isinstance(base, ModelMeta):
                base._subclasses.append(klass)
        return klass


class Model(metaclass=ModelMeta):
    def __init__(self, raw_data):
        self._data = {name: raw_data.get(field.serialized_name or name) for name, field in self._fields.items()}

    def validate(self):
        self._data = {name: field.validate(self._data[name]) for name, field in self._fields.items()}
        return self

    def to_primitive(self):
        return dict(self._data)


def claiming_model(polymorphic, data):
    """The model below `polymorphic` whose fields are the data's"""
    for model in polymorphic._subclasses:
        if model._fields.keys() == data.keys():
            return model
    raise ValidationError("No model for the data.")
